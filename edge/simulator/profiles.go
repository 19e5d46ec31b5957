package simulator

import "time"

// Profiles are the simulated factories by name: a healthy one on real hardware,
// a stable laboratory whose pipeline sometimes warns, and a noisy machine that
// goes through every failure.
func Profiles() map[string]Profile {
	return map[string]Profile{"factory-a": factoryA(), "factory-b": factoryB(), "factory-c": factoryC()}
}

func factoryA() Profile {
	return Profile{
		Name:            "factory-a",
		EnvironmentType: "physical-rpi",
		InputModuleType: "sensor",
		StateNode:       "worker2",
		Temperature:     Band{Base: 24_50, Jitter: 50},
		Humidity:        Band{Base: 45_00, Jitter: 2_00},
		Pressure:        Band{Base: 1013_00, Jitter: 50},
		Nodes: []NodeProfile{
			{ID: "master", Role: "control-plane", Base: Usage{12_00, 41_00, 35_00}},
			{ID: "worker1", Role: "failover-standby", Base: Usage{9_00, 38_00, 31_00}},
			{ID: "worker2", Role: "sensor-ai-audio-preferred", Base: Usage{28_00, 55_00, 44_00}},
		},
		NodeJitter: Usage{2_00, 4_00, 2_00},
		Workloads: []WorkloadProfile{
			{"monitoring", "bme280-sensor", "worker2"},
			{"ai-apps", "safe-edge-integrated-ai", "worker2"},
			{"ai-apps", "safe-edge-audio", "worker2"},
			{"monitoring", "influxdb", "worker1"},
			{"monitoring", "prometheus", "worker1"},
			{"monitoring", "grafana", "master"},
		},
	}
}

func factoryB() Profile {
	return Profile{
		Name:            "factory-b",
		EnvironmentType: "vm-mac",
		InputModuleType: "dummy",
		StateNode:       "worker1",
		Temperature:     Band{Base: 24_50, Jitter: 3_00},
		Humidity:        Band{Base: 45_00, Jitter: 8_00},
		Pressure:        Band{Base: 1013_50, Jitter: 1_50},
		Nodes: []NodeProfile{
			{ID: "master", Role: "control-plane", Base: Usage{7_00, 32_00, 24_00}},
			{ID: "worker1", Role: "worker", Base: Usage{10_00, 36_00, 25_00}},
		},
		NodeJitter: Usage{2_00, 4_00, 2_00},
		Workloads:  dummyWorkloads("worker1"),
		AI: AIPlan{
			Every: minutes(25, 30),
			Kinds: []AIKind{{Name: "ai_warning", MinScores: 1, MaxScores: 2, Low: 50, High: 80}},
			Sound: "brief lab impact",
		},
		Sensor: SensorPlan{
			Every: minutes(6, 10),
			Hold:  sensorHold,
			Kinds: []SensorKind{
				{"temperature_high", Temperature, 39_00, 45_00},
				{"humidity_high", Humidity, 88_00, 96_00},
				{"pressure_high", Pressure, 1055_00, 1075_00},
				{"pressure_low", Pressure, 940_00, 960_00},
			},
		},
		Infra: InfraPlan{
			Every: minutes(5, 8),
			Kinds: []InfraKind{
				{"storage_warning", lastDiskFull(76_00, 84_00)},
				{"device_unavailable", oneDeviceGone("camera", "microphone")},
				{"pods_partial", lastPodCrashing(1, 4)},
				{"nodes_partial", lastNodeDown},
			},
		},
		Gap: GapPlan{Every: minutes(12, 18), Lengths: []Interval{seconds(75, 105)}},
	}
}

func factoryC() Profile {
	return Profile{
		Name:            "factory-c",
		EnvironmentType: "vm-windows",
		InputModuleType: "dummy",
		StateNode:       "factory-c-worker",
		Temperature:     Band{Base: 27_00, Jitter: 4_00},
		Humidity:        Band{Base: 52_00, Jitter: 10_00},
		Pressure:        Band{Base: 1012_00, Jitter: 2_00},
		Nodes: []NodeProfile{
			{ID: "factory-c-master", Role: "control-plane", Base: Usage{8_00, 30_00, 22_00}},
			{ID: "factory-c-worker", Role: "worker", Base: Usage{12_00, 38_00, 27_00}},
		},
		NodeJitter: Usage{3_00, 5_00, 2_00},
		Workloads:  dummyWorkloads("factory-c-worker"),
		AI: AIPlan{
			Every: minutes(25, 30),
			Kinds: []AIKind{
				{Name: "ai_warning", MinScores: 1, MaxScores: 3, Low: 50, High: 80},
				{Name: "ai_critical", MinScores: 1, MaxScores: 3, Low: 80, High: 1_00},
			},
			Sound: "intermittent vibration",
		},
		Sensor: SensorPlan{
			Every: minutes(4, 7),
			Hold:  sensorHold,
			Kinds: []SensorKind{
				{"temperature_critical", Temperature, 45_00, 52_00},
				{"humidity_critical", Humidity, 95_00, 99_00},
				{"pressure_high_critical", Pressure, 1070_00, 1090_00},
				{"pressure_low_critical", Pressure, 930_00, 950_00},
			},
		},
		Infra: InfraPlan{
			Every: minutes(3, 6),
			Kinds: []InfraKind{
				{"pods_all_unready", allPodsCrashing(2, 8)},
				{"nodes_all_not_ready", allNodesDown},
				{"network_unreachable", networkUnreachable},
				{"device_unavailable", oneDeviceGone(deviceNames...)},
				{"storage_critical", lastDiskFull(91_00, 98_00)},
			},
		},
		Gap: GapPlan{Every: minutes(18, 30), Lengths: []Interval{seconds(135, 180), seconds(301, 330)}},
	}
}

const sensorHold = 30 * time.Second

func dummyWorkloads(node string) []WorkloadProfile {
	return []WorkloadProfile{{"ai-apps", "dummy-data-generator", node}, {"ai-apps", "edge-iot-publisher", node}}
}

func minutes(low, high time.Duration) Interval {
	return Interval{Min: low * time.Minute, Max: high * time.Minute}
}

func seconds(low, high time.Duration) Interval {
	return Interval{Min: low * time.Second, Max: high * time.Second}
}
