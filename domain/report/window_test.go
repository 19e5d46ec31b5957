package report

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func parseDay(t require.TestingT, date, zone string) Day {
	day, err := ParseDay(date, zone)
	require.NoError(t, err)
	return day
}

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UTC()
}

func TestADayHasTheHoursOfItsZone(t *testing.T) {
	for _, c := range []struct {
		name, zone, date, start, end string
		// odd are the hours that don't last an hour; an absent one has 0.
		odd map[string]time.Duration
	}{
		{"no daylight saving", "Asia/Seoul", "2026-01-01", "2025-12-31T15:00:00Z", "2026-01-01T15:00:00Z", nil},
		{"end of the year", "Asia/Seoul", "2025-12-31", "2025-12-30T15:00:00Z", "2025-12-31T15:00:00Z", nil},
		{"leap day", "UTC", "2028-02-29", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z", nil},
		{"three quarters of an hour", "Asia/Kathmandu", "2026-05-01", "2026-04-30T18:15:00Z", "2026-05-01T18:15:00Z", nil},
		{"Berlin forward", "Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", map[string]time.Duration{"02": 0}},
		{"Berlin back", "Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", map[string]time.Duration{"02": 2 * time.Hour}},
		{"New York forward", "America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", map[string]time.Duration{"02": 0}},
		{"New York back", "America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", map[string]time.Duration{"01": 2 * time.Hour}},
		{"Lord Howe forward by half an hour", "Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z", map[string]time.Duration{"02": 30 * time.Minute}},
		{"Lord Howe back by half an hour", "Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", map[string]time.Duration{"01": 90 * time.Minute}},
		{"Casablanca back for Ramadan", "Africa/Casablanca", "2026-02-15", "2026-02-14T23:00:00Z", "2026-02-16T00:00:00Z", map[string]time.Duration{"02": 2 * time.Hour}},
		{"Casablanca forward after it", "Africa/Casablanca", "2026-03-22", "2026-03-22T00:00:00Z", "2026-03-22T23:00:00Z", map[string]time.Duration{"02": 0}},
		{"Santiago has no midnight", "America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z", map[string]time.Duration{"00": 0}},
		{"Santiago has eleven at night twice", "America/Santiago", "2026-04-04", "2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z", map[string]time.Duration{"23": 2 * time.Hour}},
		{"Beirut has no midnight", "Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z", map[string]time.Duration{"00": 0}},
		{"Beirut has eleven at night twice", "Asia/Beirut", "2026-10-24", "2026-10-23T21:00:00Z", "2026-10-24T22:00:00Z", map[string]time.Duration{"23": 2 * time.Hour}},
		{"Troll forward by two hours", "Antarctica/Troll", "2026-03-29", "2026-03-29T00:00:00Z", "2026-03-29T22:00:00Z", map[string]time.Duration{"01": 0, "02": 0}},
		{"Troll back by two hours", "Antarctica/Troll", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-26T00:00:00Z", map[string]time.Duration{"01": 2 * time.Hour, "02": 2 * time.Hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			day := parseDay(t, c.date, c.zone)
			require.Equal(t, Span{Start: instant(c.start), End: instant(c.end)}, day.Window())
			lengths := map[string]time.Duration{}
			var total time.Duration
			for _, hour := range day.Hours() {
				lengths[hour.Label] = hour.Length()
				total += hour.Length()
			}
			require.Equal(t, day.Length(), total)
			for number := range 24 {
				label := time.Date(2000, 1, 1, number, 0, 0, 0, time.UTC).Format("15")
				want, odd := c.odd[label]
				if !odd {
					want = time.Hour
				}
				require.Equal(t, want, lengths[label], label)
			}
		})
	}
}

func TestAnHourInTwoPartsHasBoth(t *testing.T) {
	hour, err := parseDay(t, "2026-10-25", "Antarctica/Troll").Hour("01")
	require.NoError(t, err)
	require.Equal(t, []Span{
		{Start: instant("2026-10-24T23:00:00Z"), End: instant("2026-10-25T00:00:00Z")},
		{Start: instant("2026-10-25T01:00:00Z"), End: instant("2026-10-25T02:00:00Z")},
	}, hour.Spans)
	require.False(t, hour.Contains(instant("2026-10-25T00:30:00Z")), "that is hour 02")
	require.Equal(t, []time.Time{instant("2026-10-24T23:00:00Z"), instant("2026-10-25T01:00:00Z")}, hour.Partitions())
}

func TestADayInTwoPartsHasBoth(t *testing.T) {
	day := parseDay(t, "2006-10-28", "America/St_Johns")
	require.Equal(t, 25*time.Hour-time.Minute, day.Length(), "clocks went from 00:01 back to 23:01 of the day before")
	require.Equal(t, 25*time.Hour, day.Window().Length())
	last, err := day.Hour("23")
	require.NoError(t, err)
	require.Len(t, last.Spans, 2)
}

func TestAnHourReadsEveryPartitionItTouches(t *testing.T) {
	hour := func(date, zone, label string) Hour {
		hour, err := parseDay(t, date, zone).Hour(label)
		require.NoError(t, err)
		return hour
	}
	require.Equal(t, []time.Time{instant("2025-12-31T15:00:00Z")}, hour("2026-01-01", "Asia/Seoul", "00").Partitions())
	require.Equal(t, []time.Time{instant("2026-04-30T18:00:00Z"), instant("2026-04-30T19:00:00Z")}, hour("2026-05-01", "Asia/Kathmandu", "00").Partitions())
	require.Equal(t, []time.Time{instant("2026-10-25T00:00:00Z"), instant("2026-10-25T01:00:00Z")}, hour("2026-10-25", "Europe/Berlin", "02").Partitions())
}

func TestAnHourIsHalfOpen(t *testing.T) {
	hour, err := parseDay(t, "2026-01-01", "Asia/Seoul").Hour("23")
	require.NoError(t, err)
	require.True(t, hour.Contains(instant("2026-01-01T14:59:59.999999999Z")))
	require.False(t, hour.Contains(instant("2026-01-01T15:00:00Z")))
	require.True(t, hour.Contains(instant("2026-01-01T14:00:00Z")))
	require.False(t, hour.Contains(instant("2026-01-01T13:59:59.999Z")))
}

func TestTheDocumentFormOfAnHour(t *testing.T) {
	seoul := parseDay(t, "2026-01-01", "Asia/Seoul")
	require.Equal(t, HourWindow{
		StartLocal: "2026-01-01T15:00:00+09:00", EndLocal: "2026-01-01T15:59:59+09:00",
		StartKST: "2026-01-01T15:00:00+09:00", EndKST: "2026-01-01T15:59:59+09:00",
		StartUTC: "2026-01-01T06:00:00Z", EndUTC: "2026-01-01T06:59:59Z",
	}, seoul.HourWindow(seoul.Hours()[15]))
	berlin := parseDay(t, "2026-01-01", "Europe/Berlin")
	require.Empty(t, berlin.HourWindow(berlin.Hours()[0]).StartKST)
}

func TestThePreviousDayIsThatOfTheZone(t *testing.T) {
	for _, c := range []struct{ now, zone, want string }{
		{"2026-01-01T15:30:00Z", "Asia/Seoul", "2026-01-01"},
		{"2026-01-01T14:59:59Z", "Asia/Seoul", "2025-12-31"},
		{"2026-01-01T00:30:00Z", "UTC", "2025-12-31"},
		{"2028-03-01T00:30:00Z", "UTC", "2028-02-29"},
		{"2026-03-29T22:30:00Z", "Europe/Berlin", "2026-03-29"},
		{"2026-09-06T04:00:00Z", "America/Santiago", "2026-09-05"},
		{"2011-12-31T00:00:00Z", "Pacific/Apia", "2011-12-29"},
	} {
		day, err := PreviousDay(instant(c.now), c.zone)
		require.NoError(t, err)
		require.Equal(t, c.want, day.Date(), "%s %s", c.now, c.zone)
		require.Equal(t, c.zone, day.Timezone())
	}
}

func TestWhatIsNoDayIsRefused(t *testing.T) {
	for _, c := range []struct{ date, zone, field string }{
		{"2026-1-1", "UTC", "date"},
		{"2026-02-30", "UTC", "date"},
		{"2027-02-29", "UTC", "date"},
		{"", "UTC", "date"},
		{"2011-12-30", "Pacific/Apia", "date"},
		{"2026-01-01", "", "timezone"},
		{"2026-01-01", "Local", "timezone"},
		{"2026-01-01", "Asia/Nowhere", "timezone"},
		{"2026-01-01", "../etc/passwd", "timezone"},
	} {
		_, err := ParseDay(c.date, c.zone)
		requireInvalid(t, err, c.field)
	}
	_, err := PreviousDay(instant("2026-01-01T00:00:00Z"), "nowhere")
	requireInvalid(t, err, "timezone")
	_, err = parseDay(t, "2026-03-29", "Europe/Berlin").Hour("02")
	requireInvalid(t, err, "hour")
}

func requireInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var bad *InvalidError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, field, bad.Field)
	require.Contains(t, err.Error(), bad.Rule)
}

func TestEveryInstantOfADayIsInTheHourThatClocksShow(t *testing.T) {
	zones := []string{
		"Asia/Seoul", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago",
		"Asia/Beirut", "Antarctica/Troll", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Monrovia",
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "at"), 0)
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		day := parseDay(t, at.In(location).Format(dateLayout), zone)
		require.True(t, day.Window().Contains(at))
		count := 0
		for _, hour := range day.Hours() {
			if hour.Contains(at) {
				count++
				number, err := strconv.Atoi(hour.Label)
				require.NoError(t, err)
				require.Equal(t, at.In(location).Hour(), number)
			}
		}
		require.Equal(t, 1, count)
	})
}
