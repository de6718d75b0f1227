import { words } from '../lib/language.svelte'

export const jobWords = words(
  {
    jobs: 'Jobs',
    none: 'No jobs.',
    kinds: {
      'memory.extract': 'Extract memories',
      'memory.embed': 'Index for search',
      'memory.summarise': 'Summarise',
      'memory.side': 'Evaluate what was looked up',
      'memory.dream': 'Dream',
      'chat.fork': 'Copy a chat',
      'chat.words': 'Index messages for search',
    } as Record<string, string>,
    states: { queued: 'Waiting', running: 'Running', done: 'Done', failed: 'Failed', cancelled: 'Cancelled' },
    attempt: (n: number) => `attempt ${n}`,
    next: (when: string) => `runs at ${when}`,
    progress: (n: string, of: string) => `${n} of ${of}`,
    sameBefore: (n: number) => (n === 1 ? 'and once before' : `and ${n} times before`),
    retry: 'Run again',
    retried: 'The job waits to run again.',
  },
  {
    jobs: '任务',
    none: '没有任务。',
    kinds: {
      'memory.extract': '提取记忆',
      'memory.embed': '建立搜索索引',
      'memory.summarise': '生成摘要',
      'memory.side': '评估查询过的内容',
      'memory.dream': '做梦',
      'chat.fork': '复制聊天',
      'chat.words': '为搜索建立消息索引',
    },
    states: { queued: '等待中', running: '进行中', done: '已完成', failed: '失败', cancelled: '已取消' },
    attempt: (n: number) => `第 ${n} 次尝试`,
    next: (when: string) => `${when} 运行`,
    progress: (n: string, of: string) => `${n} / ${of}`,
    sameBefore: (n: number) => `之前还有 ${n} 次`,
    retry: '重新运行',
    retried: '任务已重新排队。',
  },
)
