package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

func valid() Alert {
	return Alert{Scope: "factory-a", SourceType: SourceFactory, Severity: Danger, Reason: "nodes_all_not_ready", Status: "normal", FingerprintStatus: "state_snapshot", SourceUpdatedAt: noon}
}

func TestSlugs(t *testing.T) {
	for in, want := range map[string]string{
		" Nodes All-Ready ": "nodes_all_ready", "a  b": "a__b", "": "unknown", "  ": "unknown", "ecs:Describe": "ecs_describe", "공장": "공장",
	} {
		require.Equal(t, want, Slug(in))
		require.Equal(t, want, Slug(Slug(in)), "a slug stays as it is")
	}
}

func TestKeys(t *testing.T) {
	a := valid()
	require.Equal(t, Key{"ALERT#factory-a", "danger#nodes_all_not_ready#state_snapshot"}, a.Key())
	require.Equal(t, Key{"ALERT#factory-a", "OBSERVATION#danger#nodes_all_not_ready#state_snapshot"}, a.ObservationKey())
	a.FingerprintStatus = ""
	require.Equal(t, "danger#nodes_all_not_ready#normal", a.Key().SK)
	app := Alert{Scope: AppScope("shop"), Severity: Warning, Reason: "r1"}
	require.Equal(t, Key{"APP#shop", "ALERTSTATE#r1#warning"}, app.Key())
	app.StateSK = "ALERTSTATE#r1#80#2026-06-02"
	require.Equal(t, Key{"APP#shop", "ALERTSTATE#r1#80#2026-06-02"}, app.Key())
}

func TestAlertsAreCheckedAtTheDoor(t *testing.T) {
	require.NoError(t, valid().Check())
	for field, spoil := range map[string]func(*Alert){
		"scope":             func(a *Alert) { a.Scope = "Factory/A" },
		"source_type":       func(a *Alert) { a.SourceType = SourceFast },
		"severity":          func(a *Alert) { a.Severity = "purple" },
		"reason":            func(a *Alert) { a.Reason = "a#b" },
		"status":            func(a *Alert) { a.FingerprintStatus = "a#b" },
		"source_updated_at": func(a *Alert) { a.SourceUpdatedAt = factory.Millis{} },
		"source_key":        func(a *Alert) { a.SourceKey = strings.Repeat("x", 2000) },
		"cooldown_seconds":  func(a *Alert) { a.CooldownSeconds = -1 },
		"title":             func(a *Alert) { a.Title = strings.Repeat("x", 4000) },
		"state_sk":          func(a *Alert) { a.StateSK = "ALERTSTATE#x" },
		"details":           func(a *Alert) { a.Details.Facts = make([]Fact, 51) },
	} {
		t.Run(field, func(t *testing.T) {
			a := valid()
			spoil(&a)
			var invalid *InvalidError
			require.ErrorAs(t, a.Check(), &invalid)
			require.Equal(t, field, invalid.Field)
		})
	}
}

func TestScopes(t *testing.T) {
	for _, scope := range []string{"factory-a", "cloud-infra", "artifacts", "observability", "app.shop", "app.Shop_1.x"} {
		require.NoError(t, CheckScope(scope), scope)
	}
	for _, scope := range []string{"", "app.", "app.a/b", "Factory", "a#b", strings.Repeat("a", 80)} {
		require.Error(t, CheckScope(scope), scope)
	}
}

func TestAnAlertSurvivesItsJSON(t *testing.T) {
	d, err := ParseFactory(snapshotJSON("normal", `{"score":49.5,"level":"danger","top_causes":[{"field":"f","reason":"r","value":1.5,"contribution":50.25,"severity":"danger"}],"gates":[{"name":"g","level":"danger","value":"x"}]}`))
	require.NoError(t, err)
	for _, a := range d.Alerts {
		body, err := json.Marshal(a)
		require.NoError(t, err)
		require.Less(t, len(body), 4096, "an alert is small")
		var back Alert
		require.NoError(t, json.Unmarshal(body, &back))
		again, err := json.Marshal(back)
		require.NoError(t, err)
		require.JSONEq(t, string(body), string(again))
	}
}

func TestCooldowns(t *testing.T) {
	c := Cooldowns{SourceFast: {Warning: time.Minute, Danger: time.Second}}
	require.Equal(t, 300*time.Second, c.Of(valid()))
	require.Equal(t, 900*time.Second, c.Of(Alert{SourceType: SourceSlow, Severity: Warning}))
	require.Equal(t, time.Minute, c.Of(Alert{SourceType: SourceFast, Severity: Warning}))
	require.Equal(t, time.Second, c.Of(Alert{SourceType: SourceFast, Severity: Danger}))
	require.Equal(t, 24*time.Hour, c.Of(Alert{SourceType: SourceApp, Severity: Warning, CooldownSeconds: 86400}))
}

func TestSilences(t *testing.T) {
	now := noon.Time
	s := Silence{ID: "abcdefgh", Scope: "factory-a", Reason: "nodes_all_not_ready", Until: factory.MillisOf(now.Add(time.Hour)), CreatedBy: "kim", Why: "maintenance"}
	require.NoError(t, s.Check(now))
	require.True(t, s.Covers(valid(), now))
	require.False(t, s.Covers(valid(), now.Add(time.Hour)), "it ends on time, whenever the item is deleted")
	other := valid()
	other.Reason = "pods_all_unready"
	require.False(t, s.Covers(other, now))
	s.Reason = ""
	require.True(t, s.Covers(other, now), "without a reason the whole scope is quiet")
	other.Scope = "factory-b"
	require.False(t, s.Covers(other, now))
	for field, spoil := range map[string]func(*Silence){
		"scope": func(s *Silence) { s.Scope = "" }, "id": func(s *Silence) { s.ID = "A" }, "reason": func(s *Silence) { s.Reason = "A b" },
		"until": func(s *Silence) { s.Until = noon }, "created_by": func(s *Silence) { s.CreatedBy = "" }, "why": func(s *Silence) { s.Why = "" },
	} {
		bad := s
		spoil(&bad)
		require.ErrorContains(t, bad.Check(now), field+":")
	}
	s.Until = factory.MillisOf(now.Add(MaxSilence + time.Minute))
	require.ErrorContains(t, s.Check(now), "30 days")
}

func TestReservationIDsTellSnapshotsApart(t *testing.T) {
	a, b := valid(), valid()
	require.Equal(t, a.ReservationID(), b.ReservationID())
	b.SourceUpdatedAt = factory.MillisOf(noon.Add(time.Millisecond))
	require.NotEqual(t, a.ReservationID(), b.ReservationID())
	b = valid()
	b.Reason = "x"
	require.NotEqual(t, a.ReservationID(), b.ReservationID())
}
