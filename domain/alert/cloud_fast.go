package alert

import "fmt"

// fast applies the rules of the fast half. factory_freshness raises nothing:
// each factory's own alerts cover it.
func (r cloudRules) fast(half fastHalf) Decision {
	var d Decision
	errors := allErrors(half.Errors, half.sectionErrors()...)
	r.collectorErrors(&d, errors)
	r.dataPipeline(&d, half.DataPipeline, errors)
	r.backendRuntime(&d, half.BackendRuntime, errors)
	r.datastores(&d, half.Datastores)
	if s := half.FactoryFreshness; s != nil && (s.Status == statusWarning || s.Status == statusCritical) {
		d.suppress(r.alert(severityOf(s.Status), "factory_freshness_"+s.Status, s.Status, "fast: factory_freshness is "+s.Status, Details{}), whyScope)
	}
	return d
}

func (half fastHalf) sectionErrors() [][]CollectorError {
	var errors [][]CollectorError
	if s := half.BackendRuntime; s != nil {
		errors = append(errors, s.Errors)
	}
	if s := half.DataPipeline; s != nil {
		errors = append(errors, s.Errors)
	}
	for _, s := range []*section{half.Datastores, half.FactoryFreshness} {
		if s != nil {
			errors = append(errors, s.Errors)
		}
	}
	return errors
}

func (r cloudRules) dataPipeline(d *Decision, s *dataPipeline, errors []CollectorError) {
	const name = "data_pipeline"
	if s == nil {
		r.generic(d, name, nil, "", errors)
		return
	}
	if s.Status == statusNotConfigured {
		return
	}
	mark := len(d.Alerts)
	severity := severityOf(s.Status)
	r.lambdas(d, s, severity)
	if t := s.DynamoDB; t.ReadThrottles.positive() || t.WriteThrottles.positive() {
		d.raise(r.alert(severity, "dynamodb_throttles", s.Status, "fast: the table throttled requests", Details{Facts: []Fact{
			{TopicDynamoDB, "table_name", t.Table},
			{TopicDynamoDB, "read_throttle_events_5m", t.ReadThrottles.String()},
			{TopicDynamoDB, "write_throttle_events_5m", t.WriteThrottles.String()},
		}}))
	}
	r.generic(d, name, &s.section, d.since(mark), errors)
}

// lambdas raises one alert for all functions with errors and one for all that
// were throttled; they share a key.
func (r cloudRules) lambdas(d *Decision, s *dataPipeline, severity Severity) {
	var failed, throttled []Fact
	for _, l := range s.Lambdas {
		if l.Errors.positive() {
			failed = append(failed, Fact{TopicLambda, l.Name, "errors_5m=" + l.Errors.String()})
		}
		if l.Throttles.positive() {
			throttled = append(throttled, Fact{TopicLambda, l.Name, "throttles_5m=" + l.Throttles.String()})
		}
	}
	if len(failed) > 0 {
		d.raise(r.alert(severity, "data_pipeline_lambda_errors", s.Status, fmt.Sprintf("fast: %d functions had errors", len(failed)), Details{Facts: failed}))
	}
	if len(throttled) > 0 {
		d.raise(r.alert(severity, "data_pipeline_lambda_throttles", s.Status, fmt.Sprintf("fast: %d functions were throttled", len(throttled)), Details{Facts: throttled}))
	}
}

func (r cloudRules) backendRuntime(d *Decision, s *backendRuntime, errors []CollectorError) {
	const name = "backend_runtime"
	if s == nil {
		r.generic(d, name, nil, "", errors)
		return
	}
	if s.Status == statusNotConfigured {
		return
	}
	mark := len(d.Alerts)
	if s.ALB.Unhealthy.positive() {
		d.raise(r.alert(severityOf(s.Status), "alb_unhealthy_hosts", s.Status, "fast: unhealthy_host_count is above 0", Details{Facts: []Fact{
			{TopicALB, "target_group_name", s.ALB.TargetGroup},
			{TopicALB, "healthy_host_count", s.ALB.Healthy.String()},
			{TopicALB, "unhealthy_host_count", s.ALB.Unhealthy.String()},
		}}))
	}
	r.generic(d, name, &s.section, d.since(mark), errors)
}

// datastores alerts only when a store is down for certain.
func (r cloudRules) datastores(d *Decision, s *section) {
	if s == nil || s.Status != statusCritical {
		return
	}
	d.raise(r.alert(Danger, "datastores_critical", s.Status, "fast: datastores is critical", sectionDetails(s)))
}
