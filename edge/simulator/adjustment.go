package simulator

import "fmt"

// Adjustment is what is added to the readings of a factory whose setting was
// changed; its zero value changes nothing.
type Adjustment struct {
	Temperature Centi `json:"temperature_offset_c"`
	Humidity    Centi `json:"humidity_offset_percent"`
	Pressure    Centi `json:"pressure_offset_hpa"`
}

// String names each offset.
func (a Adjustment) String() string {
	return fmt.Sprintf("temperature %s °C, humidity %s %%, pressure %s hPa", a.Temperature, a.Humidity, a.Pressure)
}

// change adds the offsets to readings; humidity can't leave 0..100.
func (a Adjustment) change(s *sensorPayload) {
	s.Temperature += a.Temperature
	s.Humidity = max(0, min(s.Humidity+a.Humidity, hundredPercent))
	s.Pressure += a.Pressure
}
