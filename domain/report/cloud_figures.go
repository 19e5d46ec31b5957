package report

import (
	"millrace/domain/exact"
)

// CloudFigures are everything counted and measured of the infrastructure over
// some time.
type CloudFigures struct {
	// Fast and Slow count samples by the status of the half.
	Fast       CloudCounts     `json:"fast_status_samples"`
	Slow       CloudCounts     `json:"slow_status_samples"`
	Backend    CloudBackend    `json:"backend_runtime"`
	Datastores CloudDatastores `json:"datastores"`
	Pipeline   CloudPipeline   `json:"data_pipeline"`
	Freshness  CloudFreshness  `json:"factory_freshness"`
	EKS        CloudEKS        `json:"eks_management"`
	Storage    CloudStorage    `json:"storage_freshness"`
	// Errors count what could not be measured, by source and code.
	Errors map[string]cloudTally `json:"collector_errors,omitempty"`
}

// figures are what one sample tells. Closing tells that it is the last of its
// half in its five minutes.
func (s cloudSample) figures(counted map[string]bool) CloudFigures {
	var f CloudFigures
	status := cloudOneStatus(s.status())
	if s.half == CloudFast {
		f.Fast = status
	} else {
		f.Slow = status
	}
	for name, read := range map[string]func(cloudSight){
		"backend_runtime":   func(s cloudSight) { f.Backend = s.backend() },
		"datastores":        func(s cloudSight) { f.Datastores = s.datastores() },
		"data_pipeline":     func(s cloudSight) { f.Pipeline = s.pipeline() },
		"factory_freshness": func(s cloudSight) { f.Freshness = s.freshness() },
		"eks_management":    func(s cloudSight) { f.EKS = s.eks() },
		"storage_freshness": func(s cloudSight) { f.Storage = s.storage() },
	} {
		if halfOfSection[name] != s.half {
			continue
		}
		if sight, ok := s.sight(name, counted); ok {
			read(sight)
		}
	}
	f.Errors = s.errors()
	return f
}

var halfOfSection = map[string]string{
	"backend_runtime": CloudFast, "datastores": CloudFast, "data_pipeline": CloudFast, "factory_freshness": CloudFast,
	"eks_management": CloudSlow, "storage_freshness": CloudSlow,
}

// errors counts the collector errors of the half, or of its sections where an
// older collector wrote them only there. Their messages are left out: they are
// texts of others.
func (s cloudSample) errors() map[string]cloudTally {
	list := s.fields.children("errors")
	if len(list) == 0 {
		for name, half := range halfOfSection {
			if half == s.half {
				list = append(list, s.fields.child(name).children("errors")...)
			}
		}
	}
	var errors map[string]cloudTally
	for _, e := range list {
		source := e.name("source")
		if source == "" {
			source = e.name("collector")
		}
		if source == "" {
			source = "collector"
		}
		if code := e.name("code"); code != "" {
			source += " " + code
		}
		if errors == nil {
			errors = map[string]cloudTally{}
		}
		errors[source]++
	}
	return errors
}

func (f CloudFigures) merge(o CloudFigures) CloudFigures {
	return CloudFigures{
		Fast: f.Fast.merge(o.Fast), Slow: f.Slow.merge(o.Slow),
		Backend: f.Backend.merge(o.Backend), Datastores: f.Datastores.merge(o.Datastores), Pipeline: f.Pipeline.merge(o.Pipeline),
		Freshness: f.Freshness.merge(o.Freshness), EKS: f.EKS.merge(o.EKS), Storage: f.Storage.merge(o.Storage),
		Errors: cloudMergeMaps(f.Errors, o.Errors, cloudTally.merge),
	}
}

// maxCloudEntries bounds each list by name in the figures of an hour or a day.
const maxCloudEntries = 50

// trim bounds every list by name to the entries that matter most.
func (f CloudFigures) trim(limit int) CloudFigures {
	for _, section := range []*CloudSection{
		&f.Backend.CloudSection, &f.Datastores.CloudSection, &f.Pipeline.CloudSection,
		&f.Freshness.CloudSection, &f.EKS.CloudSection, &f.Storage.CloudSection,
	} {
		section.Reasons = cloudTrim(section.Reasons, limit, cloudMinutes.rank)
	}
	f.Errors = cloudTrim(f.Errors, limit, cloudTally.rank)
	p := &f.Pipeline
	p.Lambdas = cloudTrim(p.Lambdas, limit, func(l CloudLambda) exact.Decimal { return l.Errors.Total.Add(l.Throttles.Total) })
	p.Queues = cloudTrim(p.Queues, limit, func(q CloudQueue) exact.Decimal { return q.DeadLetters })
	p.Schedulers = cloudTrim(p.Schedulers, limit, cloudMinutes.rank)
	p.TaskQueues = cloudTrim(p.TaskQueues, limit, func(b CloudBacklog) exact.Decimal { return b.Late })
	p.Schedules = cloudTrim(p.Schedules, limit, func(s CloudSchedule) exact.Decimal { return s.Late.Add(s.Paused) })
	f.Freshness.Factories = cloudTrim(f.Freshness.Factories, limit, func(c CloudFactory) exact.Decimal { return c.Stale })
	f.Storage.Factories = cloudTrim(f.Storage.Factories, limit, func(c CloudStorageFactory) exact.Decimal { return c.Stale })
	f.EKS = f.EKS.trim(limit)
	return f
}

func (e CloudEKS) trim(limit int) CloudEKS {
	e.Nodegroups = cloudTrim(e.Nodegroups, limit, func(g CloudNodegroup) exact.Decimal { return g.Inactive.Add(g.Issues) })
	if e.Nodes != nil {
		n := *e.Nodes
		n.NotReadyBy = cloudTrim(n.NotReadyBy, limit, cloudMinutes.rank)
		e.Nodes = &n
	}
	if e.Pods != nil {
		p := *e.Pods
		p.TopByCPU, p.TopByMemory = p.TopByCPU[:min(len(p.TopByCPU), limit)], p.TopByMemory[:min(len(p.TopByMemory), limit)]
		e.Pods = &p
	}
	if e.ArgoCD != nil {
		a := *e.ArgoCD
		a.Apps = cloudTrim(a.Apps, limit, cloudMinutes.rank)
		e.ArgoCD = &a
	}
	return e
}

// notConfigured are the sections that there was nothing to look at of.
func (f CloudFigures) notConfigured() []string {
	sections := []string{}
	for _, s := range f.sections() {
		if s.Samples.NotConfigured > 0 && s.Samples.watched() == 0 {
			sections = append(sections, s.name)
		}
	}
	return sections
}

type cloudNamedSection struct {
	name string
	CloudSection
}

func (f CloudFigures) sections() []cloudNamedSection {
	return []cloudNamedSection{
		{"backend_runtime", f.Backend.CloudSection},
		{"datastores", f.Datastores.CloudSection},
		{"data_pipeline", f.Pipeline.CloudSection},
		{"factory_freshness", f.Freshness.CloudSection},
		{"eks_management", f.EKS.CloudSection},
		{"storage_freshness", f.Storage.CloudSection},
	}
}
