export const recovery = {
  title: 'Recovery',
  soon: 'These pages are on their way. The API has everything already.',
};
