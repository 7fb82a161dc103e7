/** What should be looked at soon, in its place on the page. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';

/** The title in the colour of the text: yellow on yellow cannot be read. */
const TITLE = { title: { color: 'var(--mantine-color-text)' } };

export function Warning({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Alert color="yellow" variant="light" title={title} styles={TITLE}>
      {children}
    </Alert>
  );
}
