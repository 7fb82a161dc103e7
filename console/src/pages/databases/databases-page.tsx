import { Text } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function DatabasesPage() {
  return (
    <Page title={text.databases.title}>
      <Text>{text.databases.soon}</Text>
    </Page>
  );
}
