/** The end of a log. Colours and cursor movements of terminals are left out: only the words are shown. */
import { useEffect, useRef } from 'react';
import classes from './log-text.module.css';

const COMMANDS = new RegExp(
  [
    String.raw`\x1b\[[0-?]*[ -/]*[@-~]`,
    String.raw`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`,
    String.raw`\x1b[ -/]*[0-~]`,
    String.raw`[\0-\x08\x0b-\x1f]`,
  ].join('|'),
  'g',
);

/** As it is read; what a terminal was cleared with leaves no empty lines at the beginning. */
export function wordsOfLog(log: string): string {
  return log.replaceAll('\r\n', '\n').replace(COMMANDS, '').replace(/^\n+/, '');
}

export function LogText({ log }: { log: string }) {
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (log !== '') box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [log]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <pre ref={box} className={classes.log} tabIndex={0}>
      {wordsOfLog(log)}
    </pre>
  );
}
