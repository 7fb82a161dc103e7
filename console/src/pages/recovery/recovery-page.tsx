import { Text } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function RecoveryPage() {
  return (
    <Page title={text.recovery.title}>
      <Text>{text.recovery.soon}</Text>
    </Page>
  );
}
