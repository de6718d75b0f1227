// How a research is asked for, as a form has it.

import type { components } from '@nodest/client'
import type { Research } from '../../lib/types'

type S = components['schemas']

export interface Order {
  question: string
  /** One per line. */
  queries: string
  questions: string
  hosts: string
  knowledgeBaseIds: string[]
  web: boolean
  language: string
  team: number
  doubtful: 'mark' | 'remove'
  /** undefined = as the server has it. */
  tokens: number | undefined
  seconds: number | undefined
  usd: number | undefined
}

export const blank = (question = ''): Order => ({
  question,
  queries: '',
  questions: '',
  hosts: '',
  knowledgeBaseIds: [],
  web: true,
  language: '',
  team: 1,
  doubtful: 'mark',
  tokens: undefined,
  seconds: undefined,
  usd: undefined,
})

/** orderOf is the order that a plan carries out. */
export function orderOf({ question, plan: p }: Research): Order {
  const { budget, queries, questions, hosts, ...same } = p
  return { ...same, ...budget, question, queries: queries.join('\n'), questions: questions.join('\n'), hosts: hosts.join('\n') }
}

const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean)

/** hostsOf are the hosts in a text; addresses are taken for their hosts. */
const hostsOf = (text: string) => text.split(/[\s,，、;]+/).map((h) => h.replace(/^https?:\/\//i, '').replace(/\/.*$/, '')).filter(Boolean)

/** changes are the members of an order that differ from another one. */
export function changes(o: Order, from: Order): S['ResearchPatch'] {
  const is = (name: keyof Order) => JSON.stringify(o[name]) !== JSON.stringify(from[name])
  const limit = (name: 'tokens' | 'seconds' | 'usd') => (is(name) && o[name] !== undefined ? { [name]: o[name] } : {})
  const budget = { ...limit('tokens'), ...limit('seconds'), ...limit('usd') }
  return {
    ...(is('question') && { question: o.question.trim() }),
    ...(is('queries') && { queries: lines(o.queries) }),
    ...(is('questions') && { questions: lines(o.questions) }),
    ...(is('hosts') && { hosts: hostsOf(o.hosts) }),
    ...(is('knowledgeBaseIds') && { knowledgeBaseIds: o.knowledgeBaseIds }),
    ...(is('web') && { web: o.web }),
    ...(is('language') && { language: o.language.trim() }),
    ...(is('team') && { team: o.team }),
    ...(is('doubtful') && { doubtful: o.doubtful }),
    ...(Object.keys(budget).length > 0 && { budget }),
  }
}

/** sources reports whether an order names something to search. */
export const sources = (o: Order, web: boolean) => (o.web && web) || o.knowledgeBaseIds.length > 0
