package importer_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/commerce/importer"
)

func TestReadPartEndsAtItsBoundAndGoesOnBehindIt(t *testing.T) {
	text := "id,name\n"
	for n := range 5 {
		text += "0197fb9c-8e00-7000-8000-00000000000" + strconv.Itoa(n) + ",Tea\n"
	}
	text += ",Nameless\n"
	source, err := importer.OpenContent("x.csv", []byte(text), "product")
	if err != nil {
		t.Fatal(err)
	}
	first, err := importer.ReadPart(source.Records(), organization, importer.Config{}, 1)
	if err != nil || len(first.Records) != 1 {
		t.Fatalf("a bound of a byte: got %+v, %v, want the first record", first, err)
	}
	size := len(first.Records[0])
	for _, c := range []struct {
		most int
		want []int // records of each part
	}{{1, []int{1, 1, 1, 1, 1, 0}}, {2*size - 1, []int{1, 1, 1, 1, 1}}, {2 * size, []int{2, 2, 1}}, {100 * size, []int{5}}} {
		var got []int
		refused := 0
		for skip, more := 0, true; more; {
			part, err := importer.ReadPart(source.Records(), organization, importer.Config{Skip: skip}, c.most)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, len(part.Records))
			refused += len(part.Rejected)
			skip, more = part.Next, part.Next > 0
		}
		if !slices.Equal(got, c.want) || refused != 1 {
			t.Errorf("%d bytes: got parts of %v records and %d refused, want %v and 1", c.most, got, refused, c.want)
		}
	}
}

// A list of a cell, and the header, may be as long as the file: what took the square of
// its length took minutes.
func TestALongListIsReadAtOnce(t *testing.T) {
	numbers := make([]string, 400_000)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	start := time.Now()
	for _, text := range []string{
		"Handle,Title,Tags,Variant Price\ntee,Tee,\"" + strings.Join(numbers, ",") + "\",1\n",
		strings.Join(numbers[:200_000], ",") + "\n",
	} {
		source, err := importer.OpenContent("x.csv", []byte(text), "")
		if err != nil {
			continue
		}
		if _, err := importer.ReadPart(source.Records(), organization, importer.Config{}, 1); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
