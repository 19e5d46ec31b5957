package cloudinfra

// FastReport is what the probes of the fast collector measured.
type FastReport struct {
	Outcome
	ECS        *ECS           `json:"ecs,omitempty"`
	ALB        *ALB           `json:"alb,omitempty"`
	CloudFront *CloudFront    `json:"cloudfront,omitempty"`
	Redis      *Redis         `json:"redis,omitempty"`
	RDS        *RDS           `json:"rds,omitempty"`
	Lambdas    []Lambda       `json:"lambdas,omitempty"`
	DynamoDB   *DynamoDB      `json:"dynamodb,omitempty"`
	DLQ        *DLQ           `json:"dlq,omitempty"`
	Schedulers []Scheduler    `json:"schedulers,omitempty"`
	TaskQueues []TaskQueue    `json:"task_queues,omitempty"`
	Schedules  []Schedule     `json:"schedules,omitempty"`
	Queues     []Queue        `json:"queues,omitempty"`
	Factories  []FactoryState `json:"factories,omitempty"`
}

// Fast is the half of the read model that is renewed every minute.
type Fast struct {
	// Status is the worst of the sections that count for the overall status.
	Status           Status               `json:"status"`
	BackendRuntime   BackendRuntime       `json:"backend_runtime"`
	Datastores       Datastores           `json:"datastores"`
	DataPipeline     DataPipeline         `json:"data_pipeline"`
	FactoryFreshness FactoryFreshness     `json:"factory_freshness"`
	Probes           map[Probe]ProbeState `json:"probes,omitempty"`
	Errors           []Error              `json:"errors"`
}

// EvaluateFast judges what was measured.
func EvaluateFast(r FastReport, t Thresholds) Fast {
	f := Fast{
		BackendRuntime: evaluateBackend(r, t), Datastores: evaluateDatastores(r, t),
		DataPipeline: evaluatePipeline(r, t), FactoryFreshness: evaluateFreshness(r),
		Probes: r.states(backendProbes, datastoreProbes, pipelineProbes, freshnessProbes),
		Errors: []Error{},
	}
	f.Status = Worst(f.counted()...)
	for _, s := range f.sections() {
		f.Errors = append(f.Errors, s.Errors...)
	}
	return f
}

func (f *Fast) sections() []*Section {
	return []*Section{&f.BackendRuntime.Section, &f.Datastores.Section, &f.DataPipeline.Section, &f.FactoryFreshness.Section}
}

// counted are the states that count for the overall status.
func (f *Fast) counted() []Status {
	if f == nil {
		return nil
	}
	return []Status{f.BackendRuntime.Status, f.Datastores.Status, f.DataPipeline.Status}
}

func (f *Fast) unknown() *Fast {
	if f == nil {
		return nil
	}
	grey := *f
	grey.Status = Unknown
	for _, s := range grey.sections() {
		s.Status, s.Reasons = Unknown, []string{}
	}
	return &grey
}
