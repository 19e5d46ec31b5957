package main

import (
	"fmt"
	"os"

	"millrace/domain/observability"
)

// loadPrices reads the price table; without a file no price is known.
func loadPrices(file string) (observability.Prices, error) {
	if file == "" {
		return observability.Prices{}, nil
	}
	body, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return observability.Prices{}, fmt.Errorf("read price table: %w", err)
	}
	prices, err := observability.ParsePrices(body)
	if err != nil {
		return observability.Prices{}, fmt.Errorf("price table %s: %w", file, err)
	}
	return prices, nil
}
