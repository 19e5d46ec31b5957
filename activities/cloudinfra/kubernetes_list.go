package cloudinfra

import (
	"context"
	"errors"
	"net/http"

	"go.temporal.io/sdk/activity"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Resources that are listed.
var (
	nodeResource        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podResource         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeMetricsResource = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}
	podMetricsResource  = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
	applicationResource = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
)

const (
	// listPage is how many objects one request lists.
	listPage = 500
	// maxPages bounds a listing: far above what a cluster holds.
	maxPages = 400
)

// each lists all objects of a resource, page by page, with a heartbeat after each.
func each(ctx context.Context, resource dynamic.ResourceInterface, visit func(map[string]any)) error {
	options := metav1.ListOptions{Limit: listPage}
	for range maxPages {
		page, err := resource.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			visit(item.Object)
		}
		activity.RecordHeartbeat(ctx, page.GetContinue() != "")
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return &unreadableError{what: "the listing does not end"}
}

// absent tells whether an optional API is not installed or not up: nothing is
// known then, and nothing is wrong.
func absent(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && (status.Status().Code == http.StatusNotFound || status.Status().Code == http.StatusServiceUnavailable)
}

func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...) // what is missing or no text is empty
	return value
}

// list are the maps of a list below an object.
func list(object map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...) // what is missing is empty
	elements, _ := value.([]any)
	maps := make([]map[string]any, 0, len(elements))
	for _, element := range elements {
		if m, ok := element.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
