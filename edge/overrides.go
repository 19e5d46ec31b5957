package main

import (
	"time"

	"millrace/edge/simulator"
)

// overrides change a profile; what is not set stays as the profile has it.
type overrides struct {
	AIMin     *seconds `name:"ai-event-min" help:"Least seconds between AI events." env:"AEGIS_DUMMY_AI_EVENT_MIN_SECONDS" placeholder:"S" group:"Profile"`
	AIMax     *seconds `name:"ai-event-max" help:"Most seconds between AI events." env:"AEGIS_DUMMY_AI_EVENT_MAX_SECONDS" placeholder:"S" group:"Profile"`
	SensorMin *seconds `name:"sensor-event-min" help:"Least seconds between sensor events." env:"AEGIS_DUMMY_SENSOR_EVENT_MIN_SECONDS" placeholder:"S" group:"Profile"`
	SensorMax *seconds `name:"sensor-event-max" help:"Most seconds between sensor events." env:"AEGIS_DUMMY_SENSOR_EVENT_MAX_SECONDS" placeholder:"S" group:"Profile"`
	Hold      *seconds `name:"sensor-event-hold" help:"Seconds that a sensor event is held." env:"AEGIS_DUMMY_SENSOR_EVENT_HOLD_SECONDS" placeholder:"S" group:"Profile"`
	InfraMin  *seconds `name:"infra-event-min" help:"Least seconds between infra events." env:"AEGIS_DUMMY_INFRA_EVENT_MIN_SECONDS" placeholder:"S" group:"Profile"`
	InfraMax  *seconds `name:"infra-event-max" help:"Most seconds between infra events." env:"AEGIS_DUMMY_INFRA_EVENT_MAX_SECONDS" placeholder:"S" group:"Profile"`
	GapMin    *seconds `name:"pipeline-gap-event-min" help:"Least seconds between pipeline gaps." env:"AEGIS_DUMMY_PIPELINE_GAP_EVENT_MIN_SECONDS" placeholder:"S" group:"Profile"`
	GapMax    *seconds `name:"pipeline-gap-event-max" help:"Most seconds between pipeline gaps." env:"AEGIS_DUMMY_PIPELINE_GAP_EVENT_MAX_SECONDS" placeholder:"S" group:"Profile"`
	LengthMin *seconds `name:"pipeline-gap-min" help:"Least length of every pipeline gap in seconds." env:"AEGIS_DUMMY_PIPELINE_GAP_MIN_SECONDS" placeholder:"S" group:"Profile"`
	LengthMax *seconds `name:"pipeline-gap-max" help:"Greatest length of every pipeline gap in seconds." env:"AEGIS_DUMMY_PIPELINE_GAP_MAX_SECONDS" placeholder:"S" group:"Profile"`

	Temperature       *simulator.Centi `help:"Usual temperature in degrees Celsius." env:"AEGIS_DUMMY_TEMPERATURE_BASELINE" placeholder:"N" group:"Profile"`
	TemperatureJitter *simulator.Centi `help:"Greatest deviation from it." env:"AEGIS_DUMMY_TEMPERATURE_JITTER" placeholder:"N" group:"Profile"`
	Humidity          *simulator.Centi `help:"Usual humidity in percent." env:"AEGIS_DUMMY_HUMIDITY_BASELINE" placeholder:"N" group:"Profile"`
	HumidityJitter    *simulator.Centi `help:"Greatest deviation from it." env:"AEGIS_DUMMY_HUMIDITY_JITTER" placeholder:"N" group:"Profile"`
	Pressure          *simulator.Centi `help:"Usual pressure in hPa." env:"AEGIS_DUMMY_PRESSURE_BASELINE" placeholder:"N" group:"Profile"`
	PressureJitter    *simulator.Centi `help:"Greatest deviation from it." env:"AEGIS_DUMMY_PRESSURE_JITTER" placeholder:"N" group:"Profile"`
	CPUJitter         *simulator.Centi `name:"node-cpu-jitter" help:"Greatest deviation of a node's CPU usage." env:"AEGIS_DUMMY_NODE_CPU_JITTER" placeholder:"N" group:"Profile"`
	MemoryJitter      *simulator.Centi `name:"node-memory-jitter" help:"Greatest deviation of a node's memory usage." env:"AEGIS_DUMMY_NODE_MEMORY_JITTER" placeholder:"N" group:"Profile"`
	DiskJitter        *simulator.Centi `name:"node-disk-jitter" help:"Greatest deviation of a node's disk usage." env:"AEGIS_DUMMY_NODE_DISK_JITTER" placeholder:"N" group:"Profile"`
}

func (o overrides) apply(p simulator.Profile) simulator.Profile {
	setDuration(&p.AI.Every.Min, o.AIMin)
	setDuration(&p.AI.Every.Max, o.AIMax)
	setDuration(&p.Sensor.Every.Min, o.SensorMin)
	setDuration(&p.Sensor.Every.Max, o.SensorMax)
	setDuration(&p.Sensor.Hold, o.Hold)
	setDuration(&p.Infra.Every.Min, o.InfraMin)
	setDuration(&p.Infra.Every.Max, o.InfraMax)
	setDuration(&p.Gap.Every.Min, o.GapMin)
	setDuration(&p.Gap.Every.Max, o.GapMax)
	for i := range p.Gap.Lengths {
		setDuration(&p.Gap.Lengths[i].Min, o.LengthMin)
		setDuration(&p.Gap.Lengths[i].Max, o.LengthMax)
	}
	for target, value := range map[*simulator.Centi]*simulator.Centi{
		&p.Temperature.Base: o.Temperature, &p.Temperature.Jitter: o.TemperatureJitter,
		&p.Humidity.Base: o.Humidity, &p.Humidity.Jitter: o.HumidityJitter,
		&p.Pressure.Base: o.Pressure, &p.Pressure.Jitter: o.PressureJitter,
		&p.NodeJitter.CPU: o.CPUJitter, &p.NodeJitter.Memory: o.MemoryJitter, &p.NodeJitter.Disk: o.DiskJitter,
	} {
		if value != nil {
			*target = *value
		}
	}
	return p
}

func setDuration(target *time.Duration, value *seconds) {
	if value != nil {
		*target = value.duration()
	}
}
