package manifest

import "regexp"

var elementIndex = regexp.MustCompile(`\[[0-9]+\]`)

// wranglerIgnored are keys that say nothing about how a worker runs here, with the reason.
var wranglerIgnored = map[string]string{
	"$schema":                          "for editors",
	"account_id":                       "an account of Cloudflare",
	"compatibility_date":               "which of its changes Cloudflare's runtime has made; a worker here has what docs/reference/web-apis.md lists",
	"compatibility_flags":              "the same; an import that is not there is refused",
	"configPath":                       "where a build found its configuration",
	"compliance_region":                "where Cloudflare runs it",
	"definedEnvironments":              "environments of the configuration that a build found",
	"dev":                              "for wrangler's own server",
	"env":                              "environments are chosen by wrangler's --env; a deploy here takes the keys at the top",
	"first_party_worker":               "of Cloudflare's own workers",
	"keep_names":                       "names always stay as written",
	"keep_vars":                        "vars that were set in Cloudflare's dashboard",
	"kv_namespaces[].preview_id":       "a namespace for wrangler's own server",
	"kv_namespaces[].remote":           "namespaces are this fleet's",
	"legacy_env":                       "how wrangler names environments",
	"logpush":                          "where Cloudflare sends its logs",
	"minify":                           "code is never minified",
	"no_bundle":                        "a worker is always bundled, also from what a build has bundled",
	"node_compat":                      "an import that is not there is refused",
	"observability":                    "where Cloudflare sends its logs and traces",
	"placement":                        "where Cloudflare runs it",
	"preview_urls":                     "addresses at Cloudflare",
	"previews":                         "for wrangler's previews",
	"python_modules":                   "for Python",
	"r2_buckets[].jurisdiction":        "where Cloudflare keeps it",
	"r2_buckets[].preview_bucket_name": "a bucket for wrangler's own server",
	"r2_buckets[].remote":              "buckets are this fleet's",
	"send_metrics":                     "what wrangler reports of itself",
	"services[].remote":                "services are workers of this fleet",
	"target":                           "how wrangler builds",
	"targetEnvironment":                "the environment that a build was for",
	"topLevelName":                     "the name without an environment",
	"userConfigPath":                   "where a build found its configuration",
	"upload_source_maps":               "source maps are always kept",
	"usage_model":                      "what Cloudflare charges",
	"workers_dev":                      "an address at Cloudflare",
	"zone_id":                          "a zone of Cloudflare",
	"generate_types":                   "for wrangler's own commands",
	"preserve_file_names":              "for modules that stay apart; here a worker is one module",
	"base_dir":                         "for modules that stay apart; here a worker is one module",
}

const (
	noStore  = "keep data behind fetch()"
	noBuild  = "it changes what wrangler builds: "
	noModels = "call the service with fetch()"
)

// wranglerRefused are keys that would be missed, with what to do. An element of a list is []. A key without anything in
// it is ignored.
var wranglerRefused = map[string]string{
	"agent_memory":                      noModels,
	"ai":                                noModels,
	"ai_search":                         noModels,
	"ai_search_namespaces":              noModels,
	"alias":                             noBuild + "use \"paths\" in tsconfig.json",
	"analytics_engine_datasets":         "write to the console, or send a task to a worker that counts",
	"artifacts":                         noStore,
	"browser":                           noModels,
	"build":                             noBuild + "run its command before the deploy, and let main name what it makes",
	"cache":                             "nothing is cached in front of a worker",
	"cloudchamber":                      "a worker has no containers",
	"connect":                           "a worker is not connected to by TCP",
	"containers":                        "a worker has no containers",
	"d1_databases":                      "there is no SQL database: use one with an HTTP API, with fetch()",
	"data_blobs":                        noBuild + "import a file",
	"define":                            noBuild + "use vars, or a constant in a module",
	"dispatch_namespaces":               "each owner has its workers; there is no namespace of them",
	"durable_objects":                   "there are no Durable Objects: mode persistent keeps state in one process, and what outlives it is behind fetch()",
	"exports":                           "the exports of the module need no key: nothing calls another one than the default",
	"find_additional_modules":           noBuild + "import what the worker needs",
	"flagship":                          noModels,
	"hyperdrive":                        "a worker opens no TCP connections: use a database with an HTTP API",
	"images":                            "call an image service with fetch(). Astro's adapter adds it unless its option imageService is \"compile\" or \"passthrough\"",
	"jsx_factory":                       noBuild + "use \"jsxFactory\" in tsconfig.json",
	"jsx_fragment":                      noBuild + "use \"jsxFragmentFactory\" in tsconfig.json",
	"k2":                                noStore,
	"logfwdr":                           "write to the console: log lines are messages on NATS",
	"media":                             noModels,
	"migrations":                        "there are no Durable Objects to migrate",
	"mtls_certificates":                 "fetch() has no client certificates",
	"pages_build_output_dir":            "this is a project of Cloudflare Pages: name the directory in \"assets\", and the worker in \"main\"",
	"pipelines":                         "send a task by a queue, or use the service with fetch()",
	"queues.producers[].delivery_delay": "name the delay when sending: send(body, { delaySeconds })",
	"queues.producers[].remote":         "queues are workers of this fleet",
	"ratelimits":                        "the owner's limits hold; a handler can answer 429 itself",
	"secrets_store_secrets":             "name them in secrets.required, and set them with 'pinwheel secrets set'",
	"send_email":                        "send mail by the HTTP API of a mail service, with fetch()",
	"services[].environment":            "a worker has no environments here: deploy each one as a worker of its own, and name that",
	"services[].props":                  "ctx.props is empty here: send what the service must know with the request",
	"site":                              "it is the old way to serve files: name the directory in \"assets\"",
	"streaming_tail_consumers":          "log lines are messages on NATS: subscribe to them",
	"tail_consumers":                    "log lines are messages on NATS: subscribe to them",
	"text_blobs":                        noBuild + "import a file",
	"tsconfig":                          noBuild + "the nearest tsconfig.json is used",
	"unsafe":                            "it is Cloudflare's own",
	"unsafe_hello_world":                "it is Cloudflare's own",
	"vectorize":                         noModels,
	"vpc_networks":                      "fetch() reaches what the fleet's PINWHEEL_ALLOW_PRIVATE_ADDRESSES allows",
	"vpc_services":                      "fetch() reaches what the fleet's PINWHEEL_ALLOW_PRIVATE_ADDRESSES allows",
	"wasm_modules":                      noBuild + "import a .wasm file",
	"worker_loaders":                    "a worker cannot load code",
	"workflows":                         "use tasks: env.QUEUE.send() has another event run, and task() is retried when it throws",

	"queues.consumers[].visibility_timeout_ms": "messages are not pulled over HTTP",
}

// wranglerDefaults are values of refused keys that say what is so anyway. Builds write them into their configuration.
// They are JSON without spaces.
var wranglerDefaults = map[string]string{
	"jsx_factory":  `"React.createElement"`,
	"jsx_fragment": `"React.Fragment"`,
}
