package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"millrace/workflows/names"
)

// ensureSearchAttributes makes the search attributes that the namespace lacks: a
// workflow that sets one which is not there can't go on. Temporal Cloud has them
// made by its own tools: there the error says which are missing.
func ensureSearchAttributes(ctx context.Context, temporal client.Client, namespace string, out io.Writer) error {
	have, err := temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range names.ArtifactAttributes() {
		if _, there := have.GetCustomAttributes()[name]; !there {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	_, err = temporal.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	if _, there := errors.AsType[*serviceerror.AlreadyExists](err); err != nil && !there {
		return fmt.Errorf("make the search attributes %s: %w", list, err)
	}
	_, err = fmt.Fprintf(out, "search attributes made: %s\n", list)
	return err
}
