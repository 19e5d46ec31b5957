package reporttest

import (
	"bytes"
	"time"

	"millrace/domain/factory"
)

// BrokenAt is where the object lies that is cut in the middle.
const BrokenAt = 16 * time.Hour

// odd are objects that a reader must cope with: one cut in the middle, one twice
// under another name, one of another factory and one that lies in another hour's
// folder.
func (d FactoryDay) odd() []Object {
	at := d.Start.Add(BrokenAt).UTC()
	m := d.message(factory.SourceFactoryState, at, 0)
	_, made := d.process(nil, m)
	whole := made[0]
	prefix := factory.ProcessedPrefix(d.FactoryID, whole.Dataset, at)
	elsewhere := factory.ProcessedPrefix(d.FactoryID, whole.Dataset, at.Add(time.Hour))
	foreign := bytes.Replace(whole.Body, []byte(`"factory_id":"`+d.FactoryID+`"`), []byte(`"factory_id":"factory-zz"`), 1)
	return []Object{
		{Key: prefix + "broken.json", Dataset: whole.Dataset, Body: whole.Body[:len(whole.Body)/2]},
		{Key: prefix + "twice.json", Dataset: whole.Dataset, Body: whole.Body},
		{Key: prefix + "foreign.json", Dataset: whole.Dataset, Body: foreign},
		{Key: elsewhere + "misplaced.json", Dataset: whole.Dataset, Body: whole.Body},
	}
}
