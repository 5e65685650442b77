package bench

import (
	"github.com/aws/aws-sdk-go-v2/aws"
)

type meter struct{}

func newMeter() *meter { return &meter{} }

func (m *meter) attach(*aws.Config) {}
