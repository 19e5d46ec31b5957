package report

import (
	"time"

	"millrace/domain/exact"
)

// CloudFreshness are the figures of how fresh the factories' data were. They do
// not count for the day's verdict: each factory's own report tells of it.
type CloudFreshness struct {
	CloudSection
	Factories map[string]CloudFactory `json:"factories,omitempty"`
}

// CloudFactory are the figures of one factory as the fast collector saw it.
type CloudFactory struct {
	// Pipeline counts samples by pipeline status.
	Pipeline   CloudCounts   `json:"pipeline_status_samples"`
	Stale      exact.Decimal `json:"stale_minutes"`
	AgeSeconds *CloudStat    `json:"latest_infra_state_age_seconds"`
	RiskScore  *CloudStat    `json:"risk_score"`
}

// CloudStorage are the figures of how fresh each factory's objects were.
type CloudStorage struct {
	CloudSection
	Factories map[string]CloudStorageFactory `json:"factories,omitempty"`
}

// CloudStorageFactory are the figures of one factory's objects. Ages are those
// of the newest object of each kind, in seconds.
type CloudStorageFactory struct {
	Samples    CloudCounts   `json:"samples"`
	Stale      exact.Decimal `json:"stale_minutes"`
	RawAge     *CloudStat    `json:"raw_age_seconds"`
	Processed  *CloudStat    `json:"processed_age_seconds"`
	Aggregated *CloudStat    `json:"processed_agg_age_seconds"`
}

func (s cloudSight) freshness() CloudFreshness {
	f := CloudFreshness{CloudSection: s.section()}
	f.Factories = cloudNamed(s.fields.children("factories"), "factory_id", func(fields cloudFields) CloudFactory {
		status := cloudOneStatus(fields.status("pipeline_status"))
		return CloudFactory{
			Pipeline: status, Stale: cloudWhen(status.abnormal() > 0, s.span),
			AgeSeconds: cloudMeasured(fields.number("latest_infra_state_age_seconds")), RiskScore: cloudMeasured(fields.number("risk_score")),
		}
	})
	return f
}

func (s cloudSight) storage() CloudStorage {
	f := CloudStorage{CloudSection: s.section()}
	f.Factories = cloudNamed(s.fields.children("factories"), "factory_id", func(fields cloudFields) CloudStorageFactory {
		status := fields.status("status")
		if _, judged := fields["status"]; !judged {
			status = s.fields.status("status") // of older snapshots
		}
		one := cloudOneStatus(status)
		return CloudStorageFactory{
			Samples: one, Stale: cloudWhen(one.abnormal() > 0, s.span),
			RawAge: s.age(fields, "latest_raw_at"), Processed: s.age(fields, "latest_processed_at"), Aggregated: s.age(fields, "latest_processed_agg_at"),
		}
	})
	return f
}

// age is how long before the sample a time lay, in whole seconds.
func (s cloudSight) age(fields cloudFields, key string) *CloudStat {
	at := fields.instant(key)
	if at == nil {
		return nil
	}
	seconds := exact.FromInt(max(0, int64(s.at.Sub(*at)/time.Second)))
	return cloudMeasured(&seconds)
}

func (f CloudFreshness) merge(o CloudFreshness) CloudFreshness {
	return CloudFreshness{CloudSection: f.CloudSection.merge(o.CloudSection), Factories: cloudMergeMaps(f.Factories, o.Factories, CloudFactory.merge)}
}

func (f CloudFactory) merge(o CloudFactory) CloudFactory {
	return CloudFactory{
		Pipeline: f.Pipeline.merge(o.Pipeline), Stale: f.Stale.Add(o.Stale),
		AgeSeconds: f.AgeSeconds.merge(o.AgeSeconds), RiskScore: f.RiskScore.merge(o.RiskScore),
	}
}

func (f CloudStorage) merge(o CloudStorage) CloudStorage {
	return CloudStorage{CloudSection: f.CloudSection.merge(o.CloudSection), Factories: cloudMergeMaps(f.Factories, o.Factories, CloudStorageFactory.merge)}
}

func (f CloudStorageFactory) merge(o CloudStorageFactory) CloudStorageFactory {
	return CloudStorageFactory{
		Samples: f.Samples.merge(o.Samples), Stale: f.Stale.Add(o.Stale),
		RawAge: f.RawAge.merge(o.RawAge), Processed: f.Processed.merge(o.Processed), Aggregated: f.Aggregated.merge(o.Aggregated),
	}
}
