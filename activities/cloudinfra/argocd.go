package cloudinfra

import (
	"cmp"
	"context"
	"slices"

	"millrace/domain/cloudinfra"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) probeArgoCD(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.ArgoCD], error) {
	source := workflows.SourceOf(cloudinfra.ProbeArgoCD)
	client, err := c.Kubernetes.Connect(ctx)
	if err != nil {
		return workflows.Found[cloudinfra.ArgoCD]{}, c.fail(source, err)
	}
	var apps []cloudinfra.ArgoCDApp
	err = each(ctx, client.Resource(applicationResource).Namespace(c.Settings.ArgoCDNamespace), func(object map[string]any) {
		apps = append(apps, cloudinfra.ArgoCDApp{
			Name: text(object, "metadata", "name"), SyncStatus: text(object, "status", "sync", "status"), HealthStatus: text(object, "status", "health", "status"),
		})
	})
	switch {
	case absent(err): // Argo CD is not installed
		return found(cloudinfra.ArgoCD{Apps: []cloudinfra.ArgoCDApp{}}), nil
	case err != nil:
		c.Kubernetes.Forget()
		return workflows.Found[cloudinfra.ArgoCD]{}, c.fail(source, err)
	}
	return found(argocdOf(apps)), nil
}

func argocdOf(apps []cloudinfra.ArgoCDApp) cloudinfra.ArgoCD {
	var total, synced, outOfSync, healthyApps, degraded int64
	for _, app := range apps {
		total++
		switch app.SyncStatus {
		case "Synced":
			synced++
		case "OutOfSync":
			outOfSync++
		}
		switch app.HealthStatus {
		case "Healthy":
			healthyApps++
		case "Degraded":
			degraded++
		}
	}
	// What is wrong comes first, so that a cut never hides it.
	slices.SortFunc(apps, func(a, b cloudinfra.ArgoCDApp) int {
		return cmp.Or(cmp.Compare(calm(a), calm(b)), cmp.Compare(a.Name, b.Name))
	})
	return cloudinfra.ArgoCD{
		Total: &total, Synced: &synced, OutOfSync: &outOfSync, Healthy: &healthyApps, Degraded: &degraded,
		Apps: append([]cloudinfra.ArgoCDApp{}, apps[:min(len(apps), maxItems)]...),
	}
}

func calm(app cloudinfra.ArgoCDApp) int {
	if app.SyncStatus == "Synced" && app.HealthStatus == "Healthy" {
		return 1
	}
	return 0
}
