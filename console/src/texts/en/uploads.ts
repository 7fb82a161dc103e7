/** The tray of uploads. */
import { count } from './counted.ts';

export const uploads = {
  title: 'Uploads',
  files: 'Files',
  dropHere: 'Drop to upload',
  summary: (done: number, all: number) => `${count(done)} of ${count(all)} uploaded`,
  failed: (files: number) => `${count(files)} failed`,
  cancelled: (files: number) => `${count(files)} cancelled`,
  halted:
    'The connection was lost. Uploads go on by themselves once Cloudlet answers; a file that was cut off is ' +
    'sent again from its start.',
  askNow: 'Try now',
  notStored: 'cancelled, nothing was stored',
  unreadable: 'The file was changed, moved or removed on this computer. Choose it again.',
  progress: (sent: string, total: string, speed: string) => `${sent} of ${total}, ${speed}/s`,
  waiting: 'waiting',
  fold: 'Fold the uploads up',
  unfold: 'Show the uploads',
  clear: 'Put away',
  cancel: (name: string) => `Cancel ${name}`,
  retry: (name: string) => `Send ${name} again`,
  retryAll: 'Send failed ones again',
  retryCancelled: 'Send again',
  cancelAll: 'Cancel all',
};
