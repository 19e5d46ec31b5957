package factory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPipelineStatusByAge(t *testing.T) {
	cases := []struct {
		age     time.Duration
		want    Health
		seconds int64
	}{
		{-5 * time.Minute, Normal, -300},
		{-time.Millisecond, Normal, 0},
		{0, Normal, 0},
		{60 * time.Second, Normal, 60},
		{60*time.Second + 999*time.Millisecond, Normal, 60},
		{61 * time.Second, Warning, 61},
		{120*time.Second + 999*time.Millisecond, Warning, 120},
		{121 * time.Second, Critical, 121},
		{300 * time.Second, Critical, 300},
		{301 * time.Second, Critical, 301},
		{365 * 24 * time.Hour, Critical, 31536000},
	}
	for _, c := range cases {
		last := noon.Add(-c.age)
		got := EvaluatePipeline(&last, nil, noon)
		require.Equal(t, c.want, got.Status, c.age)
		require.Equal(t, c.seconds, *got.LatestInfraStateAgeSeconds, c.age)
	}
}

func TestAPipelineWithoutInfraStateIsCritical(t *testing.T) {
	last := noon.Add(-7 * time.Second)
	got := EvaluatePipeline(nil, &last, noon)
	require.Equal(t, Critical, got.Status)
	require.Nil(t, got.LatestInfraStateAgeSeconds)
	require.Equal(t, int64(7), *got.LatestFactoryStateAgeSeconds)
}

func TestFactoryStateDoesNotDecideThePipelineStatus(t *testing.T) {
	infra, state := noon.Add(-time.Second), noon.Add(-time.Hour)
	got := EvaluatePipeline(&infra, &state, noon)
	require.Equal(t, Normal, got.Status)
	require.Equal(t, int64(3600), *got.LatestFactoryStateAgeSeconds)
}
