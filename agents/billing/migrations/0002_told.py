from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0001_tables'),
    ]

    operations = [
        migrations.AlterField(
            model_name='caseevent',
            name='kind',
            field=models.CharField(choices=[('opened', 'Opened'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('commented', 'Commented'), ('told', 'Told the customer')], max_length=10),
        ),
    ]
