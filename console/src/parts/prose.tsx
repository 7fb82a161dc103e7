/** Words of the cloud: what stands between backticks is shown as code. All of it is text. */
import { Code } from '@mantine/core';
import { Fragment } from 'react';

export function Prose({ children }: { children: string }) {
  // Every second part stood between two backticks; a lone one stays as it is.
  return children.split(/`([^`\n]+)`/).map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other name, and never move
    index % 2 === 1 ? <Code key={index}>{part}</Code> : <Fragment key={index}>{part}</Fragment>,
  );
}
