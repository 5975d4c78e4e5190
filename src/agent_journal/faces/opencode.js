// The journal in OpenCode: passes on what `agent-journal mcp` offers, asks OpenCode's permission
// before each call, and says who is calling. Nothing else is decided here.
// Copied to where it is by `agent-journal install opencode`, which replaces it whole.

import { spawn } from "node:child_process"
import { homedir } from "node:os"

const COMMAND = ["agent-journal", "mcp"]
const VERSION = "unstamped"
const PROTOCOL = 1 // of what this file and the server tell each other beyond MCP

const OLDEST = "1.15.13" // before it, ctx.ask asks nobody, or JSON schemas break every request
const START_MS = 1000 * (Number(process.env.AGENT_JOURNAL_START_S) || 5)
const CALL_MS = 60_000
const SUBJECT = { journal_write: "title", journal_read: "id", journal_search: "text" }

/** One process of the server, and the requests that it has not answered yet. */
class Connection {
  constructor() {
    this.waiting = new Map()
    this.lastId = 0
    this.complaint = "" // the last line of stderr
    this.child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: homedir() })
    this.child.on("error", (error) => this.end(`can't be started (${error.message})`))
    this.child.on("close", (code, signal) => this.end(`has ended (${signal ?? code})`))
    this.child.stdin.on("error", () => {}) // it has ended, which "close" tells
    eachLine(this.child.stdout, (line) => this.receive(line))
    eachLine(this.child.stderr, (line) => {
      this.complaint = line.replace(/^agent-journal: \w+: (no tools are offered: )?/, "")
    })
    const hello = {
      protocolVersion: "2025-11-25",
      capabilities: { experimental: { "agent-journal/plugin": { protocol: PROTOCOL } } },
      clientInfo: { name: "opencode", version: VERSION },
    }
    this.ready = this.ask("initialize", hello, undefined, Promise.resolve()).then(() =>
      this.send({ method: "notifications/initialized" }),
    )
    const stop = () => this.child.kill("SIGKILL") // it was not asked to write anything yet
    process.once("exit", stop) // it may hang, and not see that its host is gone
    this.ready.then(() => process.off("exit", stop), stop)
  }

  send(message) {
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n")
  }

  /** Send a request after something, and return its result; abort or a long wait cancels it. */
  ask(method, params, signal, after = this.ready) {
    return new Promise((resolve, reject) => {
      if (this.ended || signal?.aborted) return reject(new Error(this.ended ?? "aborted"))
      const id = ++this.lastId
      let isSent = false
      const cancel = (reason) => {
        const params = { requestId: id, reason }
        if (isSent) this.send({ method: "notifications/cancelled", params })
        this.waiting.get(id).reject(new Error(`the journal was not waited for: ${reason}`))
      }
      const abort = () => cancel("aborted")
      const timer = setTimeout(() => cancel(`no answer in ${CALL_MS / 1000} s`), CALL_MS)
      const settling = (settle) => (value) => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", abort)
        this.waiting.delete(id)
        settle(value)
      }
      this.waiting.set(id, { resolve: settling(resolve), reject: settling(reject) })
      signal?.addEventListener("abort", abort)
      after.then(
        () => {
          isSent = this.waiting.has(id)
          if (isSent) this.send({ id, method, params })
        },
        (error) => this.waiting.get(id)?.reject(error),
      )
    })
  }

  receive(line) {
    try {
      const { id, error, method, result } = JSON.parse(line)
      if (method === undefined && error) this.waiting.get(id)?.reject(new Error(error.message))
      else if (method === undefined) this.waiting.get(id)?.resolve(result)
    } catch {} // It is no JSON: something else has written to stdout.
  }

  end(reason) {
    this.ended ??= [`the journal's server ${reason}`, this.complaint].filter(Boolean).join(": ")
    for (const asked of this.waiting.values()) asked.reject(new Error(this.ended))
  }
}

function eachLine(stream, take) {
  let rest = ""
  stream.setEncoding("utf8")
  stream.on("data", (text) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop()
    lines.forEach(take)
  })
}

/** What all instances of the plugin in a process share: the server, and what it offers. */
class Journal {
  said = new Set()

  async ask(method, params, signal) {
    if (!this.connection || this.connection.ended) this.connection = new Connection()
    return this.connection.ask(method, params, signal)
  }

  /** Return the tools to register. That fails once starting takes too long, until it is done. */
  tools(client) {
    this.listing ??= this.list(client)
    this.limit ??= new Promise((_, reject) => {
      const error = new Error(`the journal's server took more than ${START_MS / 1000} s to start`)
      setTimeout(() => reject(error), START_MS).unref()
    })
    return Promise.race([this.listing, this.limit])
  }

  async list(client) {
    const health = await client._client?.get({ url: "/global/health" })
    const version = health?.data?.version
    const isRelease = /^\d+\.\d+\.\d+$/.test(version)
    if (!version || (isRelease && version.localeCompare(OLDEST, "en", { numeric: true }) < 0)) {
      throw new Error(`OpenCode ${version ?? ""} is too old; the journal needs ${OLDEST}`)
    }
    const { tools } = await this.ask("tools/list")
    if (tools.length > 0) return tools
    this.connection.child.stdin.end()
    throw new Error(this.connection.complaint)
  }

  /** Write to OpenCode's log, the same thing only once. */
  say(client, message) {
    if (this.said.has(message)) return
    this.said.add(message)
    const body = { service: "agent-journal", level: "warn", message }
    client.app.log({ body }).catch(() => {}) // there is nowhere else to say it
  }
}

export const AgentJournal = async ({ client, directory, worktree }) => {
  const journal = (globalThis[Symbol.for(`${COMMAND} ${VERSION}`)] ??= new Journal())
  const models = new Map() // of each session's latest message
  const hooks = {
    "chat.message": async (input, output) => {
      models.set(input?.sessionID, output?.message?.model)
    },
  }
  const tools = await journal.tools(client).catch((error) => {
    journal.say(client, `agent-journal offers no tools: ${error.message}`)
    return []
  })
  if (tools.length === 0) return hooks

  const execute = async (name, args, ctx) => {
    if (typeof args !== "object" || args === null) throw new Error(`${name} takes an object`)
    const patterns = [pattern(args[SUBJECT[name]])]
    const asked = ctx.ask?.({ permission: name, patterns, always: ["*"], metadata: {} })
    if (typeof asked?.then !== "function") throw new Error("OpenCode can't ask for permission")
    await asked
    const folders = [ctx.worktree, ctx.directory, worktree, directory]
    const model = ctx.extra?.model
    const said = models.get(ctx.sessionID)
    const caller = {
      project: folders.find((folder) => folder && folder !== "/"),
      session: ctx.sessionID,
      agent: ctx.agent,
      model: model?.id ?? said?.modelID,
      provider: model?.providerID ?? said?.providerID,
    }
    const params = { name, arguments: args, _meta: { "agent-journal/caller": caller } }
    const answer = await journal.ask("tools/call", params, ctx.abort)
    const text = answer.content.map((part) => part.text).join("\n")
    if (answer.isError) throw new Error(text)
    return text
  }
  const named = (make) => Object.fromEntries(tools.map((tool) => [tool.name, make(tool)]))
  const schemas = named((tool) => tool.inputSchema)
  return {
    ...hooks,
    tool: named(({ name, description, inputSchema }) => ({
      description,
      args: inputSchema.properties,
      execute: (args, ctx) => execute(name, args, ctx),
    })),
    "tool.definition": async ({ toolID }, output) => {
      // Without this, all arguments would be required.
      if (Object.hasOwn(schemas, toolID)) output.jsonSchema = schemas[toolID]
    },
  }
}

/** Return what a permission's patterns are compared with: a text, its blanks as in an entry. */
function pattern(value) {
  return String(value ?? "").replace(/[\s\x1c-\x1f\x85]+/g, " ").trim() || "*"
}
