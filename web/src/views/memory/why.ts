// Why something was found or recalled, in words.

import { words } from '../../lib/language.svelte'
import type { Found } from './types'

export const whyWords = words(
  {
    kinds: { profile: 'Profile', preference: 'Preference', event: 'Event', plan: 'Plan', promise: 'Promise', relation: 'Relation', other: 'Other' },
    subjects: { user: 'You', character: 'The character', relationship: 'Your relationship', world: 'The world' },
    origins: {
      user: 'written by you',
      llm: 'extracted by the model',
      rule: 'extracted by rules',
      import: 'imported',
      circle: 'happened in the circle',
      extraction: 'learned in a chat, and approved by you',
    },
    fact: 'Memory',
    message: 'Message',
    said: (name: string, seq: number) => `${name}, #${seq}`,
    openFact: 'Open the memory',
    openChat: 'Open in the chat',
    source: (n: number) => (n > 1 ? `Source and ${n - 1} more` : 'Source'),
    parts: { lexical: 'words and context', vector: 'meaning', spelling: 'spelling', recency: 'recency', importance: 'importance', feedback: 'feedback' },
    score: (percent: string, list: string) => `Score ${percent}: ${list}`,
    profile: 'It is part of the profile, which every prompt contains.',
    because: (reasons: string) => `It ${reasons}.`,
    and: (list: string[]) => (list.length < 2 ? (list[0] ?? '') : `${list.slice(0, -1).join(', ')} and ${list.at(-1)}`),
    matched: (list: string[]) => `matches the words ${list.map((w) => `“${w}”`).join(', ')}`,
    matchedOne: (word: string) => `matches the word “${word}”`,
    reasons: {
      words: 'matches words of the question',
      near: 'fits the message beside it',
      around: 'fits the messages around it',
      session: 'comes from a conversation about this',
      answer: 'follows a similar question',
      speaker: 'is from or about the person who is meant',
      day: 'is about the day that is named',
      kind: 'has a time, place, number or name, as asked',
      vector: 'has a similar meaning',
      spelling: 'has similar spelling',
      recency: 'is recent',
      importance: 'is important',
      length: 'is long enough to say something',
      feedback: 'has helped before',
      exploration: 'has not been tried yet',
    },
    unknown: 'The reasons were not stored.',
    name: 'It has your name, which you ask for.',
  },
  {
    kinds: { profile: '个人资料', preference: '喜好', event: '事件', plan: '计划', promise: '承诺', relation: '人际关系', other: '其他' },
    subjects: { user: '你', character: '角色', relationship: '你们的关系', world: '世界' },
    origins: {
      user: '由你添加',
      llm: '由模型提取',
      rule: '按规则提取',
      import: '导入',
      circle: '朋友圈中发生',
      extraction: '从聊天中得到，由你批准',
    },
    fact: '记忆',
    message: '消息',
    said: (name: string, seq: number) => `${name}，第 ${seq} 条`,
    openFact: '打开记忆',
    openChat: '在聊天中打开',
    source: (n: number) => (n > 1 ? `来源等 ${n} 条` : '来源'),
    parts: { lexical: '词语与上下文', vector: '含义', spelling: '拼写', recency: '时间', importance: '重要程度', feedback: '反馈' },
    score: (percent: string, list: string) => `得分 ${percent}：${list}`,
    profile: '它属于个人资料，每个提示词都会包含。',
    because: (reasons: string) => `它${reasons}。`,
    and: (list: string[]) => list.join('，'),
    matched: (list: string[]) => `含有${list.map((w) => `“${w}”`).join('、')}`,
    matchedOne: (word: string) => `含有“${word}”`,
    reasons: {
      words: '与问题的用词相符',
      near: '与相邻的消息相关',
      around: '与前后的消息相关',
      session: '来自谈论此事的一次对话',
      answer: '接在类似的问题之后',
      speaker: '由所指的人说出或与其有关',
      day: '与提到的日期有关',
      kind: '含有所问的时间、地点、数字或名字',
      vector: '含义相近',
      spelling: '拼写相近',
      recency: '时间较近',
      importance: '较重要',
      length: '内容足够具体',
      feedback: '以前有帮助',
      exploration: '还没有用过',
    },
    unknown: '没有保存原因。',
    name: '它含有你所问的名字。',
  },
)

export type Reason = keyof typeof whyWords.reasons

// Words that are in most sentences say nothing.
const weak = new Set(
  'the and for are was were you your yours who what when where which why how does did has have had can could will would should that this these those with from about into there their they them then than his her she him its not any some did been being our mine'.split(' '),
)

const han = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/

/** matched lists the words of a question that a text has, at most four. */
export function matched(question: string, text: string): string[] {
  const inText = text.slice(0, 4000).toLowerCase()
  const known = new Set(inText.match(/[\p{L}\p{N}']+/gu) ?? [])
  const found = new Set<string>()
  for (const word of question.slice(0, 2000).toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? []) {
    if (han.test(word)) for (const part of common(word, inText)) found.add(part)
    else if (word.length > 2 && !weak.has(word)) {
      const stem = word.slice(0, Math.max(4, word.length - 2))
      for (const k of known) if (k === word || (word.length > 3 && k.startsWith(stem) && k.length - word.length < 4)) found.add(k)
    }
  }
  return [...found].slice(0, 4)
}

/** common are the longest parts of two or more characters that a text has too. */
function common(word: string, text: string): string[] {
  const parts: string[] = []
  for (let i = 0; i < Math.min(word.length, 200); ) {
    let end = i
    while (end < word.length && text.includes(word.slice(i, end + 1))) end++
    if (end - i > 1) parts.push(word.slice(i, end))
    i = Math.max(end, i + 1)
  }
  return parts
}

/** reasons are the signals of a unit, the strongest first. */
export function reasons(f: Found): { name: Reason; value: number }[] {
  const all = new Map<string, number>(Object.entries(f.signals))
  all.set('recency', f.parts.recency)
  all.set('importance', f.parts.importance)
  return [...all]
    .filter(([name, value]) => value > 0 && name in whyWords.reasons)
    .map(([name, value]) => ({ name: name as Reason, value }))
    .sort((a, b) => b.value - a.value)
}

const around = new Set<Reason>(['near', 'around', 'session'])

/** sentence says why a unit was found; what adds little is left out. */
export function sentence(f: Found, question: string): string {
  if (f.signals['profile']) return whyWords.profile
  const all = reasons(f).filter((r) => r.name !== 'length')
  if (f.score === 1 && f.signals['kind'] === 1) return whyWords.name
  if (all.length === 0) return whyWords.unknown
  const least = all[0]!.value / 12
  const hits = f.signals['words'] ? matched(question, f.text) : []
  const context = all.find((r) => around.has(r.name)) // one of them says enough
  const said = all.filter((r) => (r.value >= least || (r.name === 'words' && hits.length > 0)) && (r === context || !around.has(r.name))).slice(0, 4)
  said.sort((a, b) => Number(b.name === 'words') - Number(a.name === 'words')) // words are said first
  const list = said.map((r) => (r.name !== 'words' || hits.length === 0 ? whyWords.reasons[r.name] : hits.length === 1 ? whyWords.matchedOne(hits[0]!) : whyWords.matched(hits)))
  return whyWords.because(whyWords.and(list))
}
