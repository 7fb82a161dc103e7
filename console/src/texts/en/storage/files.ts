import { count, counted } from '../counted.ts';

export const files = {
  calculateSize: 'Calculate size',
  counting: 'Counting…',
  /** A folder that is still being counted. */
  atLeast: (size: string) => `${size} +`,
  inFolder: (files: number, isWhole: boolean) =>
    isWhole ? counted(files, 'file') : `${count(files)} files so far`,
  sum: (size: string, files: number) => `${size} in ${counted(files, 'file')}`,
};
