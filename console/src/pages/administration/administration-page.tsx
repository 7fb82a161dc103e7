import { Text } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';

export function AdministrationPage() {
  return (
    <Page title={text.administration.title}>
      <Text>{text.administration.soon}</Text>
    </Page>
  );
}
