/** The end of a log. Colours and cursor movements of terminals are left out: only the words are shown. */
import { useLayoutEffect, useRef } from 'react';
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

interface LogTextProps {
  readonly log: string;
  /** Its end stays in sight when more is written. */
  readonly isAtEnd: boolean;
  readonly onScroll: (isAtEnd: boolean) => void;
}

/** px above the end that still count as the end. */
const NEARLY = 30;

export function LogText({ log, isAtEnd, onScroll }: LogTextProps) {
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (isAtEnd && log !== '') box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [log, isAtEnd]);
  return (
    <pre
      ref={box}
      className={classes.log}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
        onScroll(scrollHeight - scrollTop - clientHeight < NEARLY)
      }
    >
      {wordsOfLog(log)}
    </pre>
  );
}
