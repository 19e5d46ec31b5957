// Package logging makes the structured logger of a program.
package logging

import (
	"io"
	"log/slog"

	"millrace/platform/config"
)

// New is a logger that writes to w as the settings say and names the program in
// every line.
func New(w io.Writer, program string, settings config.Logging) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(settings.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if settings.LogFormat == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(handler).With("program", program)
}
