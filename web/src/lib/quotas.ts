// Limits of what a user may store and use: the names of the kinds that the server counts, and what
// to do when a limit is reached.

import type { Failure } from '@nodest/client'
import { bytes, dollars, number, sentences } from './format'
import { words } from './language.svelte'

export const quotaWords = words(
  {
    kinds: {
      bytes: 'Space',
      messages: 'Messages',
      conversations: 'Chats',
      characters: 'Characters',
      resources: 'World books, presets, regex scripts, personas and templates',
      memories: 'Memories',
      saves: 'Save points',
      attachments: 'Pictures in posts',
      posts: 'Posts in the circle',
      research: 'Deep research',
      knowledgeBases: 'Knowledge bases',
      tokens: 'Tokens of apps',
      tokensPerDay: 'Tokens today',
      usdPerMonth: 'Cost this month',
    } as Record<string, string>,
    reached: (kind: string, limit: string) => `You have reached your limit: ${kind}, at most ${limit}.`,
    tokensUsed: (limit: string) => `You have used all of your ${limit} tokens for today.`,
    tokensReserved: (limit: string) => `The rest of your ${limit} tokens for today is reserved for running replies and background work. Try again when they are finished.`,
    moneyUsed: (limit: string) => `You have used all of your ${limit} for models this month. The count starts again on the first of the month (UTC). The owner of the server can raise the limit.`,
    moneyReserved: (limit: string) => `The rest of your ${limit} for models this month is reserved for running replies and background work. Try again when they are finished.`,
    waitOrAsk: 'The count starts again at midnight UTC. The owner of the server can raise the limit.',
    deleteOrAsk: 'Delete what you no longer need, or ask the owner of the server for a higher limit.',
  },
  {
    kinds: {
      bytes: '空间',
      messages: '消息',
      conversations: '聊天',
      characters: '角色',
      resources: '世界书、预设、正则脚本、人设和模板',
      memories: '记忆',
      saves: '存档点',
      attachments: '动态配图',
      posts: '朋友圈动态',
      research: '深入研究',
      knowledgeBases: '知识库',
      tokens: '应用令牌',
      tokensPerDay: '今日 Token',
      usdPerMonth: '本月费用',
    },
    reached: (kind: string, limit: string) => `已达到上限：${kind}最多 ${limit}。`,
    tokensUsed: (limit: string) => `今日的 ${limit} Token 已用完。`,
    tokensReserved: (limit: string) => `今日 ${limit} Token 的剩余部分已预留给进行中的回复和后台任务，请等它们结束后再试。`,
    moneyUsed: (limit: string) => `本月的模型费用上限 ${limit} 已用完。额度在每月 1 日（UTC）恢复，服务器的所有者可以提高上限。`,
    moneyReserved: (limit: string) => `本月模型费用上限 ${limit} 的剩余部分已预留给进行中的回复和后台任务，请等它们结束后再试。`,
    waitOrAsk: '额度在 UTC 零点恢复。服务器的所有者可以提高上限。',
    deleteOrAsk: '请删除不再需要的内容，或请服务器的所有者提高上限。',
  },
)

/** amount is an amount of a kind in words. */
export const amount = (kind: string, n: number) => (kind === 'bytes' ? bytes(n) : number(n))

/** advice says what to do about a kind of which there is too much. */
export const advice = (kind: string) => (kind === 'tokensPerDay' ? quotaWords.waitOrAsk : quotaWords.deleteOrAsk)

/** exceeded says which limit a failure is about, and what to do; empty = it does not name one. */
export function exceeded({ quota, limit, reserved }: Failure['details']): string {
  if (typeof quota !== 'string' || typeof limit !== 'number' || !Object.hasOwn(quotaWords.kinds, quota)) return ''
  if (quota === 'usdPerMonth') return (reserved ? quotaWords.moneyReserved : quotaWords.moneyUsed)(dollars(limit))
  const most = amount(quota, limit)
  if (quota !== 'tokensPerDay') return sentences(quotaWords.reached(quotaWords.kinds[quota]!, most), advice(quota))
  return reserved ? quotaWords.tokensReserved(most) : sentences(quotaWords.tokensUsed(most), advice(quota))
}
