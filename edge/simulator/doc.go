// Package simulator makes the telemetry of simulated factories: three profiles
// with their normal readings, deterministic rounds of events (sensor readings
// out of range, AI detections, broken clusters) and gaps in the pipeline.
//
// What a factory sends follows from its profile, its seed and the time alone,
// so a run can be repeated, and hours of it made in a moment.
package simulator
