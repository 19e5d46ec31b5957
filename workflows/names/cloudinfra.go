package names

// Workflow types of the collectors of the cloud infrastructure.
const (
	CloudInfraFast = "CloudInfraFast"
	CloudInfraSlow = "CloudInfraSlow"
)

// Ids of the collectors' schedules.
const (
	ScheduleCloudInfraFast = "cloud-infra-fast"
	ScheduleCloudInfraSlow = "cloud-infra-slow"
)
