package monitoring

import "millrace/domain/exact"

// AgentMetrics are the metrics of an agent, in the order they are shown. Their
// keys, units and kinds are fixed, so that agents of one account can be put
// together.
var AgentMetrics = []Definition{
	{Key: "contextUtilization", Unit: "percent", Label: "Context utilization", Kind: Gauge},
	{Key: "contextTokens", Unit: "tokens", Label: "Context tokens", Kind: Gauge},
	{Key: "contextLimit", Unit: "tokens", Label: "Context limit", Kind: Gauge},
	{Key: "sessionUtilization", Unit: "percent", Label: "Session limit used", Kind: Gauge},
	{Key: "weeklyUtilization", Unit: "percent", Label: "Weekly limit used", Kind: Gauge},
	{Key: "inputTokens", Unit: "tokens", Label: "Input tokens", Kind: Counter},
	{Key: "outputTokens", Unit: "tokens", Label: "Output tokens", Kind: Counter},
	{Key: "cachedTokens", Unit: "tokens", Label: "Cached tokens", Kind: Counter},
	{Key: "requests", Unit: "requests", Label: "Requests", Kind: Counter},
	{Key: "errors", Unit: "errors", Label: "Errors", Kind: Counter},
	{Key: "cost", Unit: "usd", Label: "Cost", Kind: Counter},
}

var hundred = exact.FromInt(100)

// checkAgentValue adds the rules of an agent's units: a percentage is between 0
// and 100, all but the cost is counted in whole numbers, nothing is negative.
func (d Definition) checkAgentValue(field string, value exact.Decimal) error {
	if err := d.checkValue(field, value); err != nil {
		return err
	}
	switch {
	case value.Sign() < 0:
		return invalid(field, "must not be negative")
	case d.Unit == "percent" && hundred.Less(value):
		return invalid(field, "must be a percentage from 0 to 100")
	case d.Unit != "percent" && d.Unit != "usd" && !value.Round(0).Equal(value):
		return invalid(field, "must be a whole number")
	}
	return nil
}
