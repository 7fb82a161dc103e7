/** The tray of uploads. */
export const uploads = {
  title: 'Uploads',
  files: 'Files',
  dropHere: 'Drop to upload',
  summary: (done: string, all: string) => `${done} of ${all} uploaded`,
  failed: (count: string) => `${count} failed`,
  cancelled: (count: string) => `${count} cancelled`,
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
