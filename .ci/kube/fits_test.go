package kube_test

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// fits returns what the API server, or the pods, would only find later: names that it refuses, selectors that select
// nothing, ports and volumes that are not there, a pod that the Pod Security Standard "restricted" does not admit.
func fits(list objects, namespace string) error {
	deployments := find[*appsv1.Deployment](list)
	if len(deployments) != 1 {
		return fmt.Errorf("%d Deployments", len(deployments))
	}
	d := deployments[0]
	pod := d.Spec.Template
	errs := []error{names(list, namespace), selectors(list, pod), restricted(pod), mounted(pod.Spec), addresses(pod.Spec)}
	c := pod.Spec.Containers[0]
	probes := map[string]*corev1.Probe{
		"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe,
	}
	for name, probe := range probes {
		if probe == nil || !hasPort(c, probe.HTTPGet.Port.String()) {
			errs = append(errs, fmt.Errorf("no port for the probe of %s", name))
		}
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		errs = append(errs, errors.New("pods get a token of their ServiceAccount"))
	}
	if pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks {
		errs = append(errs, errors.New("a Service pinwheel-nats would set PINWHEEL_NATS_PORT"))
	}
	for _, a := range find[*corev1.ServiceAccount](list) {
		if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken || a.Name != pod.Spec.ServiceAccountName {
			errs = append(errs, errors.New("the ServiceAccount"))
		}
	}
	if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
		errs = append(errs, errors.New("pods end before others take events"))
	}
	return errors.Join(errs...)
}

// names checks names and labels as the API server does.
func names(list objects, namespace string) error {
	var errs []error
	seen := map[string]bool{}
	for _, o := range list {
		faults := validation.IsDNS1035Label(o.GetName())
		for key, value := range o.GetLabels() {
			faults = append(faults, slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))...)
		}
		if seen[o.name()] {
			faults = append(faults, "it is there twice")
		}
		seen[o.name()] = true
		if o.GetNamespace() != namespace {
			faults = append(faults, "it is in "+o.GetNamespace())
		}
		for _, f := range faults {
			errs = append(errs, fmt.Errorf("%s: %s", o.name(), f))
		}
	}
	return errors.Join(errs...)
}

func hasPort(c corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// selectors checks that everything that selects pods or Services finds ours, with the ports that it names.
func selectors(list objects, pod corev1.PodTemplateSpec) error {
	var errs []error
	selects := func(what string, selector map[string]string, has map[string]string) {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(has)) {
			errs = append(errs, fmt.Errorf("%s selects nothing", what))
		}
	}
	port := func(what, name string) {
		if !hasPort(pod.Spec.Containers[0], name) {
			errs = append(errs, fmt.Errorf("%s: the pod has no port %s", what, name))
		}
	}
	byLabels := func(what string, s *metav1.LabelSelector) { selects(what, s.MatchLabels, pod.Labels) }
	for _, o := range list {
		switch v := o.Object.(type) {
		case *appsv1.Deployment:
			byLabels(o.name(), v.Spec.Selector)
			for _, c := range v.Spec.Template.Spec.TopologySpreadConstraints {
				byLabels(o.name(), c.LabelSelector)
			}
		case *corev1.Service:
			selects(o.name(), v.Spec.Selector, pod.Labels)
			for _, p := range v.Spec.Ports {
				port(o.name(), p.TargetPort.String())
			}
		case *policyv1.PodDisruptionBudget:
			byLabels(o.name(), v.Spec.Selector)
		case *networkingv1.NetworkPolicy:
			byLabels(o.name(), &v.Spec.PodSelector)
			for _, r := range v.Spec.Ingress {
				for _, p := range r.Ports {
					port(o.name(), p.Port.String())
				}
			}
		case *monitoringv1.ServiceMonitor:
			n := 0
			for _, s := range find[*corev1.Service](list) {
				if labels.SelectorFromSet(v.Spec.Selector.MatchLabels).Matches(labels.Set(s.Labels)) {
					n++
					port(o.name(), s.Spec.Ports[0].TargetPort.String())
				}
			}
			if n != 1 {
				errs = append(errs, fmt.Errorf("%s selects %d Services", o.name(), n))
			}
		}
	}
	return errors.Join(errs...)
}

// restricted checks the pod against the Pod Security Standard, and what it does not ask.
func restricted(pod corev1.PodTemplateSpec) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	at := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if r := policy.AggregateCheckResults(evaluator.EvaluatePod(at, &pod.ObjectMeta, &pod.Spec)); !r.Allowed {
		return fmt.Errorf("restricted: %s: %s", r.ForbiddenReason(), r.ForbiddenDetail())
	}
	for _, c := range pod.Spec.Containers {
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			return errors.New("the root file system can be written")
		}
	}
	if *pod.Spec.SecurityContext.RunAsUser != 10001 {
		return errors.New("it is not the user of the image")
	}
	return nil
}

// mounted checks that each mount has a volume, each volume a mount, and each variable with a path a file.
func mounted(spec corev1.PodSpec) error {
	var errs []error
	c := spec.Containers[0]
	var files, used []string
	for _, v := range spec.Volumes {
		at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		if at < 0 {
			errs = append(errs, fmt.Errorf("the volume %s is not mounted", v.Name))
			continue
		}
		if v.Secret != nil {
			for _, i := range v.Secret.Items {
				files = append(files, path.Join(c.VolumeMounts[at].MountPath, i.Path))
			}
		}
	}
	if len(c.VolumeMounts) != len(spec.Volumes) {
		errs = append(errs, errors.New("a mount has no volume"))
	}
	seen := map[string]bool{}
	for _, e := range c.Env {
		if seen[e.Name] {
			errs = append(errs, fmt.Errorf("%s is there twice", e.Name))
		}
		seen[e.Name] = true
		if strings.HasPrefix(e.Value, "/") {
			used = append(used, e.Value)
		}
	}
	slices.Sort(files)
	slices.Sort(used)
	if !slices.Equal(files, used) {
		errs = append(errs, fmt.Errorf("the files %v are mounted, and %v are used", files, used))
	}
	return errors.Join(errs...)
}

// addresses checks that a port of the container is the one where the process listens.
func addresses(spec corev1.PodSpec) error {
	c := spec.Containers[0]
	ports := map[string]string{}
	for _, e := range c.Env {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(e.Name, "PINWHEEL_"), "_ADDR"); ok {
			ports[strings.ToLower(name)] = e.Value
		}
	}
	for _, p := range c.Ports {
		if ports[p.Name] != ":"+strconv.Itoa(int(p.ContainerPort)) {
			return fmt.Errorf("the port %s is %d, and the process listens at %q", p.Name, p.ContainerPort, ports[p.Name])
		}
		delete(ports, p.Name)
	}
	if len(ports) > 0 {
		return fmt.Errorf("the process listens where no port is: %v", ports)
	}
	return nil
}
