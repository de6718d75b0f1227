// The client of a NodeST server: connect, resume, send, stream, sync.
export { Client, type ClientOptions, type Message, type Snapshot } from './client.js'
export { Connection, type Active, type ConnectionOptions, type Event, type Position, type Socket, type SocketClass, type State, type Welcome } from './connection.js'
export { Failure, type Code } from './failure.js'
export { newKey } from './key.js'
export { Replies, type End, type Over, type Reply } from './replies.js'
export { Rest, type Answer, type Body, type Input, type Path } from './rest.js'
export type { Commands, components, Events, paths } from './generated.js'
