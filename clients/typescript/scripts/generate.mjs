// generate.mjs writes src/generated.ts: the types of all REST calls, commands and
// events, from the server's OpenAPI and AsyncAPI documents.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'
import { parse } from 'yaml'

const server = new URL('../../../server/', import.meta.url)
const document = async (name) => parse(await readFile(new URL(name, server), 'utf8'), { merge: true })
const rest = await document('openapi.yaml')
const socket = await document('asyncapi.yaml')

// The schemas of both documents become one set; those of the socket win no names:
// where both have one, it is the same object.
const schemas = rest.components.schemas
for (const [name, schema] of Object.entries(socket.components.schemas)) schemas[name] ??= schema

const commands = []
const events = []
for (const [name, message] of Object.entries(socket.components.messages)) {
  const at = name.indexOf('.')
  const [direction, of] = [name.slice(0, at), name.slice(at + 1)]
  const id = name.replaceAll(/[._](\w)/g, (_, letter) => letter.toUpperCase())
  if (direction === 'event') {
    schemas[id] = message.payload
    events.push(`  ${JSON.stringify(of)}: S[${JSON.stringify(id)}]`)
  } else if (direction === 'command') {
    const { required = [], properties } = message.payload
    schemas[id] = properties.data ?? { $ref: '#/components/schemas/Empty' }
    const reply = socket.components.messages['reply.' + of].payload.properties.data
    schemas[id + 'Reply'] = reply ?? { $ref: '#/components/schemas/Empty' }
    commands.push(`  ${JSON.stringify(of)}: { data: S[${JSON.stringify(id)}]; reply: S[${JSON.stringify(id + 'Reply')}]; key: ${required.includes('key')} }`)
  }
}

const local = JSON.stringify(rest).replaceAll('openapi.json#/', '#/')
const types = astToString(await openapiTS(JSON.parse(local), { defaultNonNullable: false, emptyObjectsUnknown: true, additionalProperties: false }))
await writeFile(new URL('../src/generated.ts', import.meta.url), `// Generated from server/openapi.yaml and server/asyncapi.yaml by scripts/generate.mjs.

${types}
type S = components['schemas']

/** The commands of the WebSocket, with their arguments and replies. */
export interface Commands {
${commands.join('\n')}
}

/** The events of a user. */
export interface Events {
${events.join('\n')}
}
`)
