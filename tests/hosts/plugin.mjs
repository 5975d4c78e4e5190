// Stands in for OpenCode where the real one can't be made to do what a test needs: it loads the
// plugin whose path is given, and obeys requests, one JSON object a line, out of order.
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"

const url = pathToFileURL(process.argv[2])
const plugin = await import(url)
const copy = await import(`${url}?copy`) // as from another folder
const logs = []
const asked = []
const instances = []
const calls = new Map()

function client(version) {
  return {
    _client: { get: async () => ({ data: version && { healthy: true, version } }) },
    app: { log: async ({ body }) => logs.push(`${body.service} ${body.level}: ${body.message}`) },
  }
}

const ways = {
  allow: async (request) => void asked.push(request),
  deny: async () => {
    throw new Error("not allowed")
  },
  effect: (request) => ({ _op: "nobody runs this", request }),
}

const requests = {
  exports: () => Object.keys(plugin),
  logs: () => logs,
  asked: () => asked,
  async load({ version, fromCopy, ...input }) {
    const { AgentJournal } = fromCopy ? copy : plugin
    const hooks = await AgentJournal({ client: client(version), ...input })
    instances.push(hooks)
    return { hooks: Object.keys(hooks).sort(), tools: hooks.tool ?? null }
  },
  async message({ instance, input, output }) {
    await instances[instance]["chat.message"](input, output)
  },
  async definition({ instance, input, output }) {
    await instances[instance]["tool.definition"](input, output)
    return output
  },
  async call({ instance, tool, args, ctx, ask, call, aborted }) {
    const controller = new AbortController()
    calls.set(call, controller)
    if (aborted) controller.abort()
    const given = { ...ctx, abort: controller.signal, ask: ways[ask] }
    return instances[instance].tool[tool].execute(args, given)
  },
  reset({ forget }) {
    instances.length = logs.length = asked.length = 0
    for (const key of forget ? Object.getOwnPropertySymbols(globalThis) : []) {
      if (key.description.includes("mcp")) delete globalThis[key]
    }
  },
  abort: ({ call }) => calls.get(call).abort(),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, kind, ...given } = JSON.parse(line)
  Promise.resolve()
    .then(() => requests[kind](given))
    .then(
      (result) => ({ result: result ?? null }),
      (error) => ({ error: error.message }),
    )
    .then((answer) => process.stdout.write(JSON.stringify({ id, ...answer }) + "\n"))
}
process.exit()
