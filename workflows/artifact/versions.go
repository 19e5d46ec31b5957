package artifact

// Changes of what lifecycles do that a history from before must not see: ids of
// workflow.GetVersion, each with the version that today's code asks for. An id
// that was ever used is never used for anything else.
const (
	// boundReplacement has replacements compared with the bundle that they name.
	boundReplacement = "bound-replacement"
	// storedAnswers has a device's answer read from the store before it counts.
	storedAnswers = "stored-answers"
	// freshLooks has factories heard again before the next wave, and before the end.
	freshLooks = "fresh-looks"
	// strictInput has start inputs with unknown fields refused, and words with
	// control characters.
	strictInput = "strict-input"
	// patientTurns has a version that waits for its turn ask ever less often.
	patientTurns = "patient-turns"
	// openUndos has a cancelled lifecycle stay open while something is left to undo.
	openUndos = "open-undos"

	today = 1
)
