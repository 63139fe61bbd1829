// The debugger's plugin: each hook tells what is about to happen, waits for the answer, and does what it says.
// It decides nothing. If nobody answers, OpenCode goes on as if it were not there.
import net from "node:net"

const { BUGEYE_AGENT_SOCKET: socket, BUGEYE_AGENT_TOKEN: token, BUGEYE_AGENT_FAIL: fail } = process.env

// One event, one answer. The socket closing is an answer too: the debugger has gone.
const ask = (input) =>
  new Promise((resolve, reject) => {
    const unheard = () =>
      fail === "closed" ? reject(new Error("the debugger does not answer, and BUGEYE_AGENT_FAIL=closed")) : resolve({})
    if (!socket || !token) return unheard()
    let text = ""
    const connection = net.connect(socket)
    connection.setEncoding("utf8")
    connection.on("connect", () =>
      connection.write(JSON.stringify({ v: 1, token, type: "hook", agent: "opencode", input }) + "\n"),
    )
    connection.on("data", (piece) => {
      text += piece
      if (!text.includes("\n")) return
      connection.end()
      try {
        const said = JSON.parse(text.slice(0, text.indexOf("\n")))
        // What it could not do is no leave to go on.
        if (said.type === "error") unheard()
        else resolve(JSON.parse(said.stdout || "{}"))
      } catch {
        unheard()
      }
    })
    connection.on("error", unheard)
    connection.on("close", unheard)
  })

const text = (parts) => parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")

export const Bugeye = async ({ client, directory }) => {
  // Sessions that another one began are sub-agents; its own is the main thread.
  const children = new Map()
  const thread = (id) => (id && children.has(id) ? id : "main")
  const tell = (input) => ask(input).catch(() => ({}))
  const heed = async (answer, id) => {
    if (answer.abort && id) await client.session.abort({ path: { id } }).catch(() => {})
    if (answer.throw) throw new Error(answer.throw)
  }
  await tell({ event: "start", cwd: directory })
  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const id = about.sessionID ?? about.info?.sessionID ?? about.info?.id
      if (event.type === "session.created" && about.info?.parentID) {
        children.set(about.info.id, about.info.parentID)
        await tell({ event: event.type, thread: about.info.id, parent: thread(about.info.parentID), title: about.info.title })
      } else if (["permission.asked", "session.idle", "session.compacted", "session.error"].includes(event.type)) {
        const { title, metadata, permission, error } = about
        await tell({ event: event.type, thread: thread(id), title, metadata, permission, error })
      }
    },
    "chat.message": async (input, output) => {
      const answer = await ask({ event: "chat.message", thread: thread(input.sessionID), prompt: text(output.parts) })
      await heed(answer, input.sessionID)
      const first = output.parts.find((part) => part.type === "text" && !part.synthetic)
      if (first && answer.output !== undefined) first.text = answer.output
      if (first && answer.add) first.text += "\n" + answer.add
    },
    "experimental.chat.messages.transform": async (_input, output) => {
      const last = output.messages.at(-1)
      const id = last?.info?.sessionID
      const model = last?.info?.modelID ?? last?.info?.model?.modelID
      const answer = await ask({ event: "messages.transform", thread: thread(id), model, messages: output.messages })
      await heed(answer, id)
      const user = output.messages.findLast((message) => message.info.role === "user")
      const kind = user?.parts.find((part) => part.type === "text")
      if (answer.add && kind) user.parts.push({ ...kind, id: kind.id + "_bugeye", text: answer.add, synthetic: true })
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const answer = await ask({ event: "tool.execute.before", thread: thread(sessionID), tool, callID, args: output.args })
      await heed(answer, sessionID)
      if (answer.args === undefined) return
      for (const name of Object.keys(output.args)) delete output.args[name]
      Object.assign(output.args, answer.args)
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      const told = { event: "tool.execute.after", thread: thread(sessionID), tool, callID, args, output: output.output }
      const answer = await ask(told)
      await heed(answer, sessionID)
      if (answer.output !== undefined) output.output = answer.output
      if (answer.add) output.output += "\n" + answer.add
    },
    dispose: async () => {
      await tell({ event: "dispose" })
    },
  }
}
