package report

import "fmt"

// cloudWording is a phrase in both languages, with verbs of fmt.
type cloudWording struct{ ko, en string }

// cloudPhrase is a phrase with its values filled in. An id that is not there is a
// mistake of this package.
func cloudPhrase(lang Language, id string, values ...any) string {
	wording, ok := cloudWords[id]
	if !ok {
		panic("no phrase " + id)
	}
	format := wording.ko
	if lang == English {
		format = wording.en
	}
	if len(values) == 0 {
		return format
	}
	return fmt.Sprintf(format, values...)
}

// cloudWords are the phrases of the report on the infrastructure. A finding's
// phrase has the finding's id. No finding repeats a name that others chose: names
// stand in tables only.
var cloudWords = map[string]cloudWording{
	"title": {"Cloud Infra 일일 운영 리포트 - %s", "Cloud Infra Daily Operations Report - %s"},

	"heading.summary":    {"요약", "Summary"},
	"heading.collection": {"데이터 수집 상태", "Data collection"},
	"heading.backend":    {"백엔드와 데이터 저장소", "Backend and datastores"},
	"heading.pipeline":   {"데이터 파이프라인", "Data pipeline"},
	"heading.kubernetes": {"EKS와 ArgoCD", "EKS and ArgoCD"},
	"heading.freshness":  {"공장 데이터와 저장소 신선도", "Freshness of factory data and storage"},
	"heading.events":     {"주요 이벤트", "Main events"},
	"heading.checks":     {"확인 필요 항목", "Recommended checks"},
	"heading.limits":     {"데이터 한계", "Data limitations"},

	"verdict.normal":  {"정상", "normal"},
	"verdict.warning": {"주의", "warning"},
	"verdict.danger":  {"위험", "danger"},

	"collected.good":         {"양호", "good"},
	"collected.partial":      {"일부 결측", "partly missing"},
	"collected.check_impact": {"결측 영향 확인 필요", "missing data, check the impact"},

	"summary.empty":      {"이 날은 수집된 스냅샷이 없어 상태를 판단할 수 없습니다.", "No snapshot was collected on this day, so that nothing can be said about it."},
	"summary.overall":    {"클라우드 인프라의 전체 상태는 %s입니다.", "The overall status of the cloud infrastructure is %s."},
	"summary.events":     {"이벤트는 모두 %d건이며 그중 위험 이벤트는 %d건입니다.", "Events: %d, of severity danger: %d."},
	"summary.collection": {"수집 상태는 %s입니다.", "Collection was %s."},

	"collection.fast":    {"fast 스냅샷은 예상 %d건 중 %d건이 수집되어 수집률은 %s입니다.", "Of %d expected fast snapshots %d were collected, a rate of %s."},
	"collection.slow":    {"slow 스냅샷은 예상 %d건 중 %d건이 수집되어 수집률은 %s입니다.", "Of %d expected slow snapshots %d were collected, a rate of %s."},
	"collection.gaps":    {"기준을 넘는 수집 공백은 %d건이고 가장 긴 공백은 %d초입니다.", "Gaps in collection: %d, the longest of %d seconds."},
	"collection.whole":   {"기준을 넘는 수집 공백은 없습니다.", "There were no gaps in collection."},
	"collection.refused": {"읽을 수 없는 객체 %d건과 중복 객체 %d건은 집계에서 제외되었습니다.", "Left out: unreadable objects %d, duplicates %d."},
	"collection.missing": {"시간별 집계가 없는 시간은 %d개입니다.", "Hours without an aggregate: %d."},
	"collection.errors":  {"수집기 오류는 %d건 기록되었습니다.", "Collector errors: %d."},

	"section.status":         {"정상이 아닌 샘플은 %[2]d건이고 전체 샘플은 %[1]d건입니다.", "samples that were not normal: %[2]d of %[1]d."},
	"section.not_configured": {"구성되지 않아 평가하지 않았습니다.", "not configured, and not judged."},
	"section.unseen":         {"측정된 샘플이 없습니다.", "there are no samples of it."},

	"subject.backend":    {"백엔드: ", "Backend: "},
	"subject.datastores": {"데이터 저장소: ", "Datastores: "},
	"subject.pipeline":   {"데이터 파이프라인: ", "Data pipeline: "},
	"subject.kubernetes": {"EKS: ", "EKS: "},
	"subject.freshness":  {"공장 데이터 신선도: ", "Factory freshness: "},
	"subject.storage":    {"저장소 신선도: ", "Storage freshness: "},

	"backend.ecs":     {"ECS 서비스의 마지막 상태는 원하는 태스크 %s개 중 %s개 실행이며, 원하는 수보다 적게 실행된 시간은 %s분입니다.", "The ECS service last wanted %s tasks and ran %s; it ran fewer than wanted for %s minutes."},
	"backend.alb":     {"ALB 대상의 5xx 응답은 하루 합계 %s건이고 5분 최대는 %s건입니다.", "5xx answers of the ALB targets: %s in the day, at most %s in 5 minutes."},
	"backend.latency": {"ALB 응답 시간 p95의 최대는 %s초입니다.", "The greatest p95 response time of the ALB was %s seconds."},

	"pipeline.lambdas":   {"함수 %d개 중 오류나 스로틀이 있었던 함수는 %d개입니다.", "Functions with errors or throttles: %[2]d of %[1]d."},
	"pipeline.letters":   {"데드레터 큐에 메시지가 있었던 시간은 최대 %s분입니다.", "A dead letter queue held messages for up to %s minutes."},
	"pipeline.schedules": {"스케줄 %d개 중 지연되거나 멈춘 스케줄은 %d개입니다.", "Schedules that were late or paused: %[2]d of %[1]d."},
	"pipeline.throttles": {"DynamoDB 읽기 스로틀은 %s건, 쓰기 스로틀은 %s건, 시스템 오류는 %s건입니다.", "DynamoDB read throttles: %s, write throttles: %s, system errors: %s."},

	"kubernetes.nodes":  {"노드의 마지막 상태는 %[2]s개 중 %[1]s개 준비이며, 준비되지 않은 노드가 있었던 시간은 %[3]s분입니다.", "%[1]s of %[2]s nodes were ready at last; some node was not ready for %[3]s minutes."},
	"kubernetes.pods":   {"정상이 아닌 파드가 있었던 시간은 %s분이고 재시작은 %d회 늘었습니다.", "Some pod was not well for %s minutes, and restarts grew by %d."},
	"kubernetes.argocd": {"ArgoCD 애플리케이션의 마지막 상태는 %[2]s개 중 %[1]s개 동기화이며, 동기화되지 않은 시간은 %[3]s분, Degraded 시간은 %[4]s분입니다.", "%[1]s of %[2]s ArgoCD applications were synced at last; some were out of sync for %[3]s minutes and degraded for %[4]s minutes."},
	"kubernetes.groups": {"노드 그룹이 ACTIVE가 아니었던 시간은 최대 %s분입니다.", "A node group was not ACTIVE for up to %s minutes."},

	"freshness.factories": {"공장 %d곳 중 데이터가 늦거나 없었던 공장은 %d곳입니다.", "Factories whose data were late or missing: %[2]d of %[1]d."},
	"freshness.objects":   {"객체가 기준보다 오래되었거나 없었던 공장은 %d곳입니다.", "Factories whose objects were too old or missing: %d."},

	"events.none": {"기록된 이벤트가 없습니다.", "No events were recorded."},
	"event":       {"%s에 %s 이벤트가 %s 수준으로 관측되었고 영향 시간은 %s분입니다.", "At %s there was the event %s of severity %s, which affected %s minutes."},

	"checks.none": {"하루 수치로는 별도 확인이 필요한 항목이 없습니다.", "The day's figures call for no further checks."},

	"check.ecs":             {"ECS 서비스의 배포와 태스크 종료 사유를 확인하십시오.", "Check the ECS service's deployments and why tasks stopped."},
	"check.cluster":         {"EKS 클러스터, 노드 그룹, Auto Scaling의 상태를 확인하십시오.", "Check the states of the EKS cluster, its node groups and Auto Scaling."},
	"check.nodes":           {"준비되지 않았던 노드의 상태와 이벤트를 확인하십시오.", "Check the conditions and events of nodes that were not ready."},
	"check.stores":          {"사용할 수 없었던 데이터 저장소를 확인하십시오.", "Check the datastores that were not available."},
	"check.argocd_degraded": {"Degraded 상태였던 ArgoCD 애플리케이션을 확인하십시오.", "Check the ArgoCD applications that were degraded."},
	"check.dead_letters":    {"데드레터 큐의 메시지와 실패 원인을 확인하십시오.", "Check the messages in dead letter queues and why they failed."},
	"check.alb_5xx":         {"ALB 5xx 응답의 시간대와 애플리케이션 로그를 확인하십시오.", "Check the application's logs at the times of the ALB's 5xx answers."},
	"check.lambdas":         {"오류나 스로틀이 있었던 함수의 로그를 확인하십시오.", "Check the logs of functions with errors or throttles."},
	"check.pods":            {"실패하거나 재시작한 파드를 확인하십시오.", "Check pods that failed or restarted."},
	"check.collectors":      {"수집기의 공백과 오류를 확인하십시오.", "Check the collectors' gaps and errors."},
	"check.schedules":       {"지연되거나 멈춘 스케줄을 확인하십시오.", "Check schedules that were late or paused."},
	"check.argocd_drift":    {"동기화되지 않은 ArgoCD 애플리케이션을 확인하십시오.", "Check ArgoCD applications that were out of sync."},
	"check.factories":       {"데이터가 늦거나 없었던 공장의 리포트를 확인하십시오.", "Check the reports of factories whose data were late or missing."},
	"check.storage":         {"저장소에 새 객체가 늦게 쌓인 공장을 확인하십시오.", "Check factories whose objects were written late."},

	"why.ecs":             {"원하는 수보다 적은 태스크가 실행되었습니다.", "Fewer tasks than wanted ran."},
	"why.cluster":         {"클러스터나 노드 그룹이 ACTIVE가 아니거나 인스턴스가 부족했습니다.", "The cluster or a node group was not ACTIVE, or instances were missing."},
	"why.nodes":           {"준비되지 않은 노드가 있었습니다.", "A node was not ready."},
	"why.stores":          {"available이 아닌 데이터 저장소가 있었습니다.", "A datastore was not available."},
	"why.argocd_degraded": {"Degraded 애플리케이션이 있었습니다.", "An application was degraded."},
	"why.dead_letters":    {"데드레터 큐에 메시지가 있었습니다.", "A dead letter queue held messages."},
	"why.alb_5xx":         {"ALB 대상이 5xx로 응답했습니다.", "The ALB's targets answered 5xx."},
	"why.lambdas":         {"함수에 오류나 스로틀이 있었습니다.", "A function had errors or throttles."},
	"why.pods":            {"정상이 아닌 파드나 재시작이 있었습니다.", "Pods were not well or restarted."},
	"why.collectors":      {"수집 공백이나 수집기 오류가 있었습니다.", "There were gaps in collection or collector errors."},
	"why.schedules":       {"스케줄이 지연되거나 멈췄습니다.", "A schedule was late or paused."},
	"why.argocd_drift":    {"동기화되지 않은 애플리케이션이 있었습니다.", "An application was out of sync."},
	"why.factories":       {"공장 데이터가 늦거나 없었습니다.", "A factory's data were late or missing."},
	"why.storage":         {"공장의 새 객체가 늦거나 없었습니다.", "A factory's objects were late or missing."},

	"limit.processed":      {"이 리포트는 S3에 저장된 processed 스냅샷을 기준으로 합니다.", "This report rests on processed snapshots in S3."},
	"limit.sampled":        {"fast 샘플은 1분, slow 샘플은 5분을 대표하며 그 사이의 변화는 보이지 않습니다.", "A fast sample stands for 1 minute and a slow one for 5; what happens in between is not seen."},
	"limit.counters":       {"5분 카운터의 합계는 5분마다 마지막 샘플로 계산합니다.", "Totals of 5 minute counters take the last sample of each 5 minutes."},
	"limit.draft":          {"모델이 쓴 문장은 운영자 검토가 필요한 초안입니다.", "Sentences by a model are a draft that an operator has to review."},
	"limit.not_configured": {"구성되지 않은 섹션은 평가에서 제외되었습니다.", "Sections that are not configured were not judged."},
	"limit.missing_hours":  {"시간별 집계가 없는 시간이 있어 수치가 실제보다 작을 수 있습니다.", "Some hours have no aggregate, so that figures may be too small."},
	"limit.unread":         {"객체가 너무 많아 일부는 읽지 않았습니다.", "There were too many objects, and some were not read."},
	"limit.unjudged":       {"알림 규칙이 읽지 못한 스냅샷의 이벤트는 포함되지 않았습니다.", "Events of snapshots that the alert rules could not read are not included."},

	"cloud.lambda_errors":                   {"Lambda 오류", "Lambda errors"},
	"cloud.lambda_throttles":                {"Lambda 스로틀", "Lambda throttles"},
	"cloud.dynamodb_throttles":              {"DynamoDB 스로틀", "DynamoDB throttles"},
	"cloud.alb_unhealthy_hosts":             {"ALB 비정상 대상", "unhealthy ALB hosts"},
	"cloud.backend_runtime_status":          {"백엔드 상태 이상", "backend not normal"},
	"cloud.data_pipeline_status":            {"데이터 파이프라인 상태 이상", "data pipeline not normal"},
	"cloud.datastores_critical":             {"데이터 저장소 장애", "datastores critical"},
	"cloud.collector_error":                 {"수집기 오류", "collector error"},
	"cloud.collector_unauthorized":          {"수집기 권한 오류", "collector not authorised"},
	"cloud.storage_freshness_status":        {"저장소 신선도 이상", "storage not fresh"},
	"cloud.eks_cluster_not_active":          {"EKS 클러스터 비활성", "EKS cluster not active"},
	"cloud.eks_nodegroup_not_active":        {"EKS 노드 그룹 비활성", "EKS node group not active"},
	"cloud.autoscaling_unhealthy_instances": {"Auto Scaling 인스턴스 부족", "unhealthy Auto Scaling instances"},
	"cloud.nodes_status":                    {"노드 상태 이상", "nodes not normal"},
	"cloud.pods_status":                     {"파드 상태 이상", "pods not normal"},
	"cloud.argocd_status":                   {"ArgoCD 상태 이상", "ArgoCD not normal"},
	"cloud.eks_management_status":           {"EKS 상태 이상", "EKS not normal"},

	"priority.high":   {"높음", "high"},
	"priority.medium": {"보통", "medium"},

	"column.item":      {"항목", "Item"},
	"column.value":     {"값", "Value"},
	"column.dataset":   {"데이터", "Dataset"},
	"column.collected": {"수집/예상", "Collected/expected"},
	"column.rate":      {"수집률", "Rate"},
	"column.gap":       {"공백 시간대", "Gap"},
	"column.seconds":   {"길이(초)", "Seconds"},
	"column.source":    {"수집기", "Collector"},
	"column.count":     {"건수", "Count"},
	"column.name":      {"이름", "Name"},
	"column.errors":    {"오류", "Errors"},
	"column.throttles": {"스로틀", "Throttles"},
	"column.p95":       {"p95 최대(ms)", "Greatest p95 (ms)"},
	"column.visible":   {"대기 메시지 최대", "Most messages"},
	"column.letters":   {"데드레터(분)", "Dead letters (min)"},
	"column.late":      {"지연(분)", "Late (min)"},
	"column.paused":    {"정지(분)", "Paused (min)"},
	"column.backlog":   {"백로그 최대", "Greatest backlog"},
	"column.age":       {"최대 나이(초)", "Greatest age (s)"},
	"column.pod":       {"파드", "Pod"},
	"column.cpu":       {"CPU 최대(m)", "Most CPU (m)"},
	"column.memory":    {"메모리 최대(MiB)", "Most memory (MiB)"},
	"column.factory":   {"공장", "Factory"},
	"column.stale":     {"늦은 시간(분)", "Late (min)"},
	"column.risk":      {"최저 Risk Score", "Lowest Risk Score"},
	"column.raw":       {"raw 최대 나이(초)", "Greatest raw age (s)"},
	"column.processed": {"processed 최대 나이(초)", "Greatest processed age (s)"},
	"column.agg":       {"processed_agg 최대 나이(초)", "Greatest processed_agg age (s)"},
	"column.time":      {"시간", "Time"},
	"column.event":     {"이벤트", "Event"},
	"column.subject":   {"상태/수집기", "Status/collector"},
	"column.severity":  {"수준", "Severity"},
	"column.minutes":   {"영향(분)", "Affected (min)"},
	"column.check":     {"확인 항목", "Check"},
	"column.priority":  {"우선순위", "Priority"},

	"row.target":       {"대상", "Target"},
	"row.date":         {"날짜", "Date"},
	"row.overall":      {"전체 상태", "Overall status"},
	"row.collection":   {"수집 상태", "Collection"},
	"row.fast":         {"fast 수집/예상", "Fast collected/expected"},
	"row.slow":         {"slow 수집/예상", "Slow collected/expected"},
	"row.ecs":          {"ECS 태스크", "ECS tasks"},
	"row.nodes":        {"EKS 노드", "EKS nodes"},
	"row.argocd":       {"ArgoCD 애플리케이션", "ArgoCD applications"},
	"row.events":       {"이벤트/위험 이벤트", "Events/of danger"},
	"row.below":        {"원하는 수보다 적은 시간(분)", "Fewer tasks than wanted (min)"},
	"row.ecs_cpu":      {"ECS CPU 최대(%)", "Greatest ECS CPU (%)"},
	"row.ecs_memory":   {"ECS 메모리 최대(%)", "Greatest ECS memory (%)"},
	"row.healthy":      {"ALB 정상 대상 최소", "Least healthy ALB hosts"},
	"row.unhealthy":    {"ALB 비정상 대상 최대", "Most unhealthy ALB hosts"},
	"row.5xx":          {"ALB 5xx 합계", "ALB 5xx in total"},
	"row.5xx_peak":     {"ALB 5xx 5분 최대", "Most ALB 5xx in 5 minutes"},
	"row.latency":      {"ALB 응답 시간 p95 최대(초)", "Greatest ALB p95 response time (s)"},
	"row.cloudfront":   {"CloudFront 5xx 비율 최대(%)", "Greatest CloudFront 5xx rate (%)"},
	"row.redis":        {"Redis 사용 불가(분)", "Redis not available (min)"},
	"row.rds":          {"RDS 사용 불가(분)", "RDS not available (min)"},
	"row.cluster":      {"EKS 클러스터 상태", "EKS cluster status"},
	"row.not_ready":    {"준비되지 않은 노드 시간(분)", "Nodes not ready (min)"},
	"row.pods":         {"실행 중 파드", "Running pods"},
	"row.pods_bad":     {"정상이 아닌 파드 시간(분)", "Pods not well (min)"},
	"row.restarts":     {"재시작 증가", "Growth of restarts"},
	"row.out_of_sync":  {"ArgoCD 동기화되지 않은 시간(분)", "ArgoCD out of sync (min)"},
	"row.degraded":     {"ArgoCD Degraded 시간(분)", "ArgoCD degraded (min)"},
	"value.unmeasured": {"측정되지 않음", "not measured"},
	"value.ratio":      {"%s %s/%s (최소 %s)", "%s %s/%s (least %s)"},

	"chart.status":     {"상태 변화", "Status over the day"},
	"chart.5xx":        {"ALB 5xx (5분)", "ALB 5xx (5 minutes)"},
	"chart.kubernetes": {"준비되지 않은 노드와 정상이 아닌 파드", "Nodes not ready and pods not well"},
	"chart.collection": {"5분당 fast 샘플", "Fast samples in 5 minutes"},
	"line.status":      {"상태", "status"},
	"line.nodes":       {"노드", "nodes"},
	"line.pods":        {"파드", "pods"},
	"line.samples":     {"샘플", "samples"},
	"limit.warning":    {"주의", "warning"},
	"limit.critical":   {"위험", "critical"},
}
