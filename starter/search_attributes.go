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

// artifactAttributes are the search attributes that lifecycles of artifacts set.
var artifactAttributes = map[string]enums.IndexedValueType{
	names.ArtifactIDAttribute:     enums.INDEXED_VALUE_TYPE_KEYWORD,
	names.ArtifactStateAttribute:  enums.INDEXED_VALUE_TYPE_KEYWORD,
	names.ArtifactKindAttribute:   enums.INDEXED_VALUE_TYPE_KEYWORD,
	names.ArtifactAuthorAttribute: enums.INDEXED_VALUE_TYPE_KEYWORD,
}

// ensureSearchAttributes makes the search attributes that the namespace lacks: a
// workflow that sets one which is not there can't go on. Temporal Cloud has them
// made by its own tools: there the error says which are missing.
func ensureSearchAttributes(ctx context.Context, temporal client.Client, namespace string, out io.Writer) error {
	have, err := temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes: %w", err)
	}
	missing := maps.Clone(artifactAttributes)
	maps.DeleteFunc(missing, func(name string, _ enums.IndexedValueType) bool {
		_, there := have.GetCustomAttributes()[name]
		return there
	})
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
