// Who is signed in, and how the connection is.

import { Failure, type State } from '@nodest/client'
import { notes } from '../lib/notes.svelte'
import { go } from '../lib/router.svelte'
import type { Me } from '../lib/types'
import { usageWords } from '../views/settings/usage/words'
import { connection, listen, rest, start } from './server'

let user = $state<Me | null>(null)
let signedIn = $state<boolean | null>(null) // null = not known yet
let problem = $state<Failure | null>(null)
let state = $state<State>('connecting')
let demo = $state(false)

listen({
  state: (s) => (state = s),
  signedOut: () => (signedIn = false),
  event: (e) => {
    if (e.ev === 'usage.warning') {
      notes.show(usageWords.nearlySpent, { lasting: true })
      void session.refresh()
    }
    if (e.ev === 'resource.updated' && (e.data.kind === 'provider' || e.data.kind === 'settings')) void session.lookForModel()
  },
})

export const session = {
  get user() {
    return user
  },
  get signedIn() {
    return signedIn
  },
  /** Why signing in did not work. */
  get problem() {
    return problem
  },
  get state() {
    return state
  },
  /** True if only the built-in demo model answers. */
  get demo() {
    return demo
  },

  /** begin uses the sign-in link of the address, if there is one, and loads. */
  async begin() {
    const link = location.pathname === '/signin' ? location.hash.slice(1) : ''
    if (link) {
      history.replaceState(null, '', '/')
      go('/', true)
      await attempt(() => rest.post('/auth/signin', { body: { link } }))
    }
    await this.load()
  },

  async load() {
    try {
      user = await rest.get('/me')
      await start()
      signedIn = true
    } catch (e) {
      const failure = e instanceof Failure ? e : new Failure({ code: 'internal', detail: 'The answer of the server cannot be read.' })
      if (signedIn === null || failure.status === 401) signedIn = false
      if (failure.status !== 401) problem = failure
      if (failure !== e) throw e
      return
    }
    void this.lookForModel()
  },

  async signIn(username: string, password: string) {
    if (await attempt(() => rest.post('/auth/login', { body: { username, password } }))) await this.load()
  },

  /** signInWith takes a token, or a sign-in link that was pasted. */
  async signInWith(secret: string) {
    const link = secret.split('/signin#')[1]
    const body = link ? { link: link.trim() } : { token: secret.trim() }
    if (await attempt(() => rest.post('/auth/signin', { body }))) await this.load()
  },

  async signOut() {
    await rest.post('/auth/logout').catch(() => undefined)
    connection.close()
    location.assign('/') // nothing of this user stays in the page
  },

  /** refresh reads the account again, after it was changed. */
  async refresh() {
    user = (await rest.get('/me').catch(() => null)) ?? user
  },

  async lookForModel() {
    const chosen = await rest.get('/settings').catch(() => null)
    if (chosen?.provider) return void (demo = chosen.provider === 'offline')
    const list = await rest.get('/providers').catch(() => null) // asks the providers, which takes its time
    if (list) demo = list.items.some((p) => p.default && p.name === 'offline')
  },
}

async function attempt(f: () => Promise<unknown>): Promise<boolean> {
  problem = null
  try {
    await f()
    return true
  } catch (e) {
    if (!(e instanceof Failure)) throw e
    problem = e
    signedIn = false
    return false
  }
}
