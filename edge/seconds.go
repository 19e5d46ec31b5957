package main

import (
	"errors"
	"time"

	"millrace/domain/exact"
)

// seconds is a length of time given as a number of seconds ("5", "0.5") or with
// a unit ("5s", "1m").
type seconds time.Duration

var errSeconds = errors.New(`must be a number of seconds, or have a unit such as "1m30s"`)

// UnmarshalText reads either form.
func (s *seconds) UnmarshalText(text []byte) error {
	if number, err := exact.Parse(string(text)); err == nil {
		nanos, fits := number.Mul(exact.FromInt(int64(time.Second))).Int64()
		if !fits || nanos < 0 {
			return errSeconds
		}
		*s = seconds(nanos)
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return errSeconds
	}
	*s = seconds(d)
	return nil
}

func (s seconds) duration() time.Duration { return time.Duration(s) }
