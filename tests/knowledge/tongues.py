"""Tongues: a paragraph in each of many languages, and the encodings its people wrote it in."""

PARAGRAPHS = {
    "de": "Der Leuchtturm öffnet täglich um zehn Uhr. Für Gäste gibt es vier Zimmer, das größte "
    "davon über der Küche. Wer später ankommt, läutet am Tor; der Wärter heißt Jörg und führt "
    "natürlich auch nachts hinauf. Hunde müssen draußen bleiben. Im Frühstück sind Brötchen, "
    "Käse und Äpfel enthalten. Bezahlt wird beim Auszug, möglichst nicht mit großen Scheinen.",
    "fr": "Le phare ouvre chaque matin à dix heures. Les chambres réservées sont gardées jusqu’au "
    "dîner; prévenez le gardien si vous arrivez après la marée. Le petit déjeuner est servi à la "
    "cuisine, où l’on trouve du thé, des crêpes et du miel. Les élèves accompagnés d’un maître "
    "ne paient que la moitié. À la fin du séjour, laissez la clé derrière la fenêtre.",
    "es": "El faro abre todos los días a las diez. ¿Cuántas habitaciones hay? Cuatro, y la más "
    "pequeña está junto a la cocina. El señor que cuida la lámpara también enseña a los niños "
    "cómo funciona el mecanismo. Después del otoño cerramos los miércoles. No se permite "
    "acampar en el jardín, pero sí dejar el equipaje en el almacén mientras llega el autobús.",
    "pt": "O farol abre todos os dias às dez horas. A exposição sobre navegação fica no último "
    "andar e não é possível levar malas. As crianças até aos seis anos não pagam. Após a "
    "renovação, a cozinha serve refeições quentes, pão e maçãs. Avisem a recepção se chegarem "
    "à noite: o portão é fechado às vinte e uma horas e só abre de manhã.",
    "it": "Il faro apre ogni mattina alle dieci. La visita è gratuita per chi ha già pagato il "
    "traghetto, perché il biglietto è lo stesso. Più tardi si può cenare nella cucina del "
    "guardiano; però bisogna dirlo il giorno prima. In città c’è anche una libertà di parcheggio "
    "che altrove non esiste. Lunedì e venerdì la torre resta chiusa, così si pulisce la lampada.",
    "sv": "Fyren öppnar klockan tio varje dag. Rummen ligger över köket och är små men varma. Den "
    "som kommer sent får ringa på klockan vid grinden; vaktmästaren hör den också på natten. "
    "Frukosten består av smör, bröd och ägg. Hundar får inte följa med upp i tornet. På hösten "
    "håller vi stängt två dagar i veckan för att måla räcken och trösklar.",
    "pl": "Latarnia jest otwarta codziennie od dziesiątej. Goście śpią w czterech pokojach, a "
    "największy znajduje się nad kuchnią. Pracownikowi przysługuje zniżka, jeżeli zgłosi się "
    "tydzień wcześniej. Śniadanie obejmuje chleb, żółty ser i świeże jabłka. Psów nie można "
    "wprowadzać na wieżę. Wszystkie opłaty należy uiścić przed wyjazdem, najlepiej gotówką.",
    "cs": "Maják je otevřen každý den od deseti hodin. Hosté spí ve čtyřech pokojích, největší "
    "z nich leží nad kuchyní. Kdo přijede později, zazvoní u branky; hlídač ho uslyší i v noci. "
    "Ke snídani dostanete chléb, sýr a čerstvá jablka. Psi na věž nesmějí. Všechny poplatky "
    "zaplaťte před odjezdem, nejlépe v hotovosti. Šatna je pod schodištěm.",
    "hu": "A világítótorony minden nap tíz órakor nyit. A vendégek négy szobában alszanak, a "
    "legnagyobb a konyha fölött van. Aki később érkezik, csengessen a kapunál; az őr éjjel is "
    "meghallja. A reggelihez kenyér, sajt és friss gyümölcs jár. Kutyát nem szabad a toronyba "
    "vinni. Minden díjat az elutazás előtt kell kifizetni, lehetőleg készpénzben.",
    "ro": "Farul este deschis zilnic de la ora zece. Oaspeţii dorm în patru camere, iar cea mai "
    "mare se află deasupra bucătăriei. Cine ajunge mai târziu sună la poartă; paznicul îl aude "
    "şi noaptea. La micul dejun primiţi pâine, brânză şi mere proaspete. Câinii nu au voie în "
    "turn. Toate taxele se plătesc înainte de plecare, de preferinţă în numerar.",
    "tr": "Deniz feneri her gün saat onda açılır. Misafirler dört odada kalır, en büyüğü mutfağın "
    "üstündedir. Geç gelenler kapıdaki zili çalsın; bekçi gece de duyar. Kahvaltıda ekmek, "
    "peynir ve taze meyve vardır. Köpeklerin kuleye çıkması yasaktır. Bütün ücretler ayrılmadan "
    "önce ödenmelidir, mümkünse nakit olarak. Işıklar gece yarısı söndürülür.",
    "lt": "Švyturys atidaromas kasdien dešimtą valandą. Svečiai miega keturiuose kambariuose, "
    "didžiausias jų yra virš virtuvės. Kas atvyksta vėliau, tegul paskambina prie vartų; "
    "sargas girdi ir naktį. Pusryčiams duodama duonos, sūrio ir šviežių obuolių. Šunų į bokštą "
    "vestis negalima. Visi mokesčiai sumokami prieš išvykstant, geriausia grynaisiais.",
    "lv": "Bāka ir atvērta katru dienu no desmitiem. Viesi guļ četrās istabās, lielākā no tām "
    "atrodas virs virtuves. Kas ierodas vēlāk, lai zvana pie vārtiem; sargs dzird arī naktī. "
    "Brokastīs ir maize, siers un svaigi āboli. Suņus tornī vest nedrīkst. Visas maksas "
    "jānokārto pirms aizbraukšanas, vislabāk skaidrā naudā.",
    "ru": "Маяк открыт каждый день с десяти часов. Гости спят в четырёх комнатах, самая большая "
    "находится над кухней. Кто приедет позже, пусть позвонит у ворот: смотритель слышит и "
    "ночью. На завтрак подают хлеб, сыр и свежие яблоки. С собаками в башню нельзя. Все сборы "
    "оплачиваются до отъезда, лучше наличными.",
    "uk": "Маяк відчинено щодня з десятої години. Гості сплять у чотирьох кімнатах, найбільша "
    "розташована над кухнею. Хто приїде пізніше, хай подзвонить біля воріт: доглядач чує й "
    "уночі. На сніданок подають хліб, сир і свіжі яблука. Із собаками до вежі не можна. Усі "
    "збори сплачують до від’їзду, краще готівкою. Її видно здалеку.",
    "bg": "Фарът е отворен всеки ден от десет часа. Гостите спят в четири стаи, най-голямата е "
    "над кухнята. Който пристигне по-късно, да позвъни на портата: пазачът чува и през нощта. "
    "За закуска има хляб, сирене и пресни ябълки. С кучета в кулата не се влиза. Всички такси "
    "се плащат преди заминаване, най-добре в брой.",
    "el": "Ο φάρος ανοίγει κάθε μέρα στις δέκα. Οι επισκέπτες κοιμούνται σε τέσσερα δωμάτια, το "
    "μεγαλύτερο βρίσκεται πάνω από την κουζίνα. Όποιος φτάσει αργότερα ας χτυπήσει το κουδούνι· "
    "ο φύλακας ακούει και τη νύχτα. Η άδεια είναι είκοσι ημέρες τον χρόνο. Για πρωινό υπάρχει "
    "ψωμί, τυρί και φρέσκα μήλα. Τα σκυλιά δεν επιτρέπονται στον πύργο.",
    "he": "המגדלור פתוח בכל יום משעה עשר. האורחים ישנים בארבעה חדרים, והגדול שבהם נמצא מעל "
    "המטבח. מי שמגיע מאוחר יותר יצלצל בשער; השומר שומע גם בלילה. לארוחת הבוקר מוגשים לחם, "
    "גבינה ותפוחים טריים. אין להכניס כלבים למגדל. את כל התשלומים יש להסדיר לפני העזיבה, רצוי "
    "במזומן.",
    "ar": "المنارة مفتوحة كل يوم من الساعة العاشرة. ينام الضيوف في أربع غرف، وأكبرها تقع فوق "
    "المطبخ. من يصل متأخرا يقرع الجرس عند البوابة؛ فالحارس يسمع في الليل أيضا. يقدم في الفطور "
    "الخبز والجبن والتفاح الطازج. لا يسمح بدخول الكلاب إلى البرج. تدفع كل الرسوم قبل المغادرة، "
    "ويفضل نقدا.",
    "th": "ประภาคารเปิดทุกวันตั้งแต่สิบโมงเช้า แขกพักในห้องสี่ห้อง ห้องที่ใหญ่ที่สุดอยู่เหนือห้องครัว "
    "ผู้ที่มาถึงช้าให้กดกริ่งที่ประตู ยามได้ยินแม้ในเวลากลางคืน อาหารเช้ามีขนมปัง เนยแข็ง และแอปเปิลสด "
    "ห้ามนำสุนัขขึ้นหอคอย โปรดชำระค่าธรรมเนียมทั้งหมดก่อนออกเดินทาง",
    "ja": "灯台は毎日十時に開きます。お客様は四つの部屋に泊まり、"
    "一番大きな部屋は台所の上にあります。"
    "遅く着いた方は門のベルを鳴らしてください。番人は夜でも聞いています。朝食にはパンとチーズと新鮮な"
    "りんごが出ます。犬を塔に連れて入ることはできません。料金は出発の前にお支払いください。",
    "zh": "灯塔每天上午十点开放。客人住在四个房间里，最大的一间在厨房上面。晚到的客人请按门口的铃，"
    "看守人夜里也能听见。早餐有面包、奶酪和新鲜的苹果。不可以带狗进入塔楼。所有费用请在离开之前付清，"
    "最好使用现金。年假为每年二十八天，须提前两周申请。",
    "zh-tw": "燈塔每天上午十點開放。客人住在四個房間裡，"
    "最大的一間在廚房上面。晚到的客人請按門口的鈴，"
    "看守人夜裡也能聽見。早餐有麵包、乳酪和新鮮的蘋果。不可以帶狗進入塔樓。所有費用請在離開之前付清，"
    "最好使用現金。年假為每年二十八天，須提前兩週申請。",
    "ko": "등대는 매일 열 시에 문을 엽니다. 손님은 네 개의 "
    "방에서 묵으며 가장 큰 방은 부엌 위에 있습니다. "
    "늦게 도착하는 분은 문 앞의 종을 울려 주세요. 지킴이는 "
    "밤에도 듣습니다. 아침 식사로 빵과 치즈와 신선한 "
    "사과가 나옵니다. 개는 탑에 데려갈 수 없습니다. 모든 요금은 떠나기 전에 내야 합니다.",
}  # fmt: skip

WESTERN = ("cp1252", "iso8859-15", "mac_roman", "cp850")
LEGACY = {
    "de": WESTERN,
    "fr": ("cp1252", "mac_roman"),
    "es": WESTERN,
    "pt": WESTERN,
    "it": ("cp1252", "mac_roman"),
    "sv": WESTERN,
    "pl": ("cp1250", "iso8859-2", "cp852"),
    "cs": ("cp1250", "iso8859-2", "cp852"),
    "hu": ("cp1250", "iso8859-2", "cp852"),
    "ro": ("cp1250", "iso8859-2"),
    "tr": ("cp1254", "iso8859-9"),
    "lt": ("cp1257", "iso8859-13"),
    "lv": ("cp1257", "iso8859-13"),
    "ru": ("cp1251", "koi8-r", "iso8859-5", "cp866", "mac_cyrillic"),
    "uk": ("cp1251", "koi8-u"),
    "bg": ("cp1251",),
    "el": ("cp1253", "iso8859-7"),
    "he": ("cp1255", "iso8859-8"),
    "ar": ("cp1256", "iso8859-6"),
    "th": ("cp874",),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "zh": ("gb18030",),
    "zh-tw": ("big5",),
    "ko": ("cp949",),
}


def passage(language: str, encoding: str, size: int) -> str:
    """Return a text of about `size` bytes in that encoding: the paragraph, over and over."""
    paragraph = PARAGRAPHS[language] + "\n"
    if not encoding.startswith(("cp125", "mac")):
        paragraph = paragraph.replace("\u2019", "'")
    body = (paragraph * (1 + size // len(paragraph))).encode(encoding)
    return body[:size].decode(encoding, errors="ignore")
