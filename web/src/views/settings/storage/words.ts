import { words } from '../../../lib/language.svelte'

export const storageWords = words(
  {
    storage: 'Storage',
    text: 'What you have on this server, and how much you may have.',
    of: (used: string, limit: string) => `${used} of ${limit}`,
    near: 'Almost full',
    full: 'Full',
    nearlyUsed: 'Almost used up',
    usedUp: 'Used up',
    space: 'Texts, cards, world books, memories and pictures take up space. Documents of knowledge bases have a limit of their own.',
    late: 'What you delete may still count for up to a day, and a chat for up to 30 days. When you reach a limit, the numbers are corrected within a minute.',
  },
  {
    storage: '存储',
    text: '你在此服务器上存储的内容及上限。',
    of: (used: string, limit: string) => `${used} / ${limit}`,
    near: '将满',
    full: '已满',
    nearlyUsed: '即将用完',
    usedUp: '已用完',
    space: '文本、角色卡、世界书、记忆和图片占用空间。知识库文档另有上限。',
    late: '删除内容后，这些数字可能偏高：最多一天，删除聊天后最多 30 天。达到上限时会在一分钟内更正。',
  },
)
