package simulator

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

func TestAnAdjustmentShiftsEveryReadingAndNothingElse(t *testing.T) {
	usual := only(run(t, options("factory-a"), time.Minute), factory.SourceFactoryState)
	shifted := options("factory-a")
	shifted.Adjustment = func() Adjustment { return Adjustment{Temperature: 12_50, Humidity: 80_00, Pressure: -20_00} }
	changed := only(run(t, shifted, time.Minute), factory.SourceFactoryState)
	require.Len(t, changed, len(usual))
	for i, m := range changed {
		was, is := usual[i].state.Sensor, m.state.Sensor
		require.Equal(t, was.Temperature+12_50, is.Temperature)
		require.EqualValues(t, 100_00, is.Humidity, "it can't be more")
		require.Equal(t, was.Pressure-20_00, is.Pressure)
		require.Equal(t, usual[i].state.AIResult, m.state.AIResult)
		require.Equal(t, usual[i].ID, m.ID)
	}
}

func TestOffsetsAreReadAsNumbersAndAsText(t *testing.T) {
	var a Adjustment
	require.NoError(t, json.Unmarshal([]byte(`{"temperature_offset_c":"12.5","humidity_offset_percent":-1,"pressure_offset_hpa":null}`), &a))
	require.Equal(t, Adjustment{Temperature: 12_50, Humidity: -1_00}, a)
	body, err := json.Marshal(a)
	require.NoError(t, err)
	var again Adjustment
	require.NoError(t, json.Unmarshal(body, &again))
	require.Equal(t, a, again)
	require.Equal(t, "temperature 12.50 °C, humidity -1.00 %, pressure 0.00 hPa", a.String())
	for _, wrong := range []string{`"12.345"`, `"hot"`, `true`, `[]`, `""`} {
		require.Error(t, json.Unmarshal([]byte(`{"temperature_offset_c":`+wrong+`}`), &a), wrong)
	}
}
