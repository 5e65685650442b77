package template

// Table is the DynamoDB table.
type Table struct {
	LogicalID  string
	StreamARN  string      // the output TableStreamArn: of this table, or of the restored one in its place
	Attributes []Attribute // of the keys
	Key        Key
	Indexes    []Index
	StreamView string // such as NEW_AND_OLD_IMAGES, "" without a stream
	TTL        string // attribute with the time of expiry, "" for none
}

// Attribute is a key attribute and its type: S, N or B.
type Attribute struct {
	Name string
	Type string
}

// Key names the key attributes; Sort is "" without one.
type Key struct {
	Partition string
	Sort      string
}

// Index is a global secondary index.
type Index struct {
	Name       string
	Key        Key
	Projection string // KEYS_ONLY or ALL
}

func (x *extractor) table(id string, properties *node) Table {
	t := Table{
		LogicalID:  id,
		StreamARN:  x.text(x.root.get("Outputs", "TableStreamArn", "Value")),
		Key:        x.key(properties.get("KeySchema")),
		StreamView: x.text(properties.get("StreamSpecification", "StreamViewType")),
	}
	if ttl := properties.get("TimeToLiveSpecification"); x.boolean(ttl.get("Enabled")) {
		t.TTL = x.text(ttl.get("AttributeName"))
	}
	for _, attribute := range properties.get("AttributeDefinitions").list() {
		t.Attributes = append(t.Attributes, Attribute{
			Name: x.text(attribute.get("AttributeName")),
			Type: x.text(attribute.get("AttributeType")),
		})
	}
	for _, index := range properties.get("GlobalSecondaryIndexes").list() {
		t.Indexes = append(t.Indexes, Index{
			Name:       x.text(index.get("IndexName")),
			Key:        x.key(index.get("KeySchema")),
			Projection: x.text(index.get("Projection", "ProjectionType")),
		})
	}
	return t
}

func (x *extractor) key(schema *node) Key {
	var key Key
	for _, element := range schema.list() {
		name := x.text(element.get("AttributeName"))
		if x.text(element.get("KeyType")) == "HASH" {
			key.Partition = name
		} else {
			key.Sort = name
		}
	}
	return key
}
