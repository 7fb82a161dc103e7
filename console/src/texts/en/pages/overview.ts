import { count, counted } from '../counted.ts';

export const overview = {
  title: 'Overview',
  hello: (name: string) => `Hello, ${name}`,
  first: 'First five minutes',
  doneCount: (done: number, all: number) => `${done} of ${all} done`,
  steps: {
    upload: [
      'Upload a file',
      'Drop a file anywhere on this page. If you have no bucket yet, one is created.',
    ],
    machine: ['Start a machine', 'Get a Linux machine with a console in this tab, in about a minute.'],
    database: ['Create a database', 'Get an SQL or document database in seconds.'],
    key: [
      'Connect a program',
      'Create a key for a backup or any S3 client, with only the rights that it needs.',
    ],
    point: [
      'Create a recovery point',
      'Save the whole cloud so that you can restore it if this host is lost.',
    ],
  },
  showSteps: 'Show steps',
  foldSteps: 'Hide steps',
  hideSteps: 'Hide the first steps permanently',
  chooseFile: 'Choose a file',
  openRecovery: 'Open recovery',
  glance: {
    title: 'Resources',
    inBuckets: (buckets: number) => `in ${counted(buckets, 'bucket')}`,
    running: (machines: number) => `${count(machines)} running`,
    take: (size: string) => `${size} used`,
    perHour: (price: string) => `${price} / hour`,
    thisMonth: 'Cost this month',
  },
  recent: { processor: (percent: number) => `Processor: ${percent} %` },
  isDone: 'Done',
  status: 'Cloud status',
  healthy: 'All systems are operational.',
  unprotected: 'All systems are operational, but this cloud is not protected yet.',
  unprotectedTitle: 'This cloud is not protected yet',
  degraded: 'Something needs attention.',
  processor: 'Processor',
  memory: 'Memory',
  disk: 'Disk',
};
